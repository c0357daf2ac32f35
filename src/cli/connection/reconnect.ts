import { AppError } from '../../base/errors.ts'
import { backoff, wait } from '../../client/backoff.ts'
import type { Client } from '../../client/client.ts'
import { complain, paint } from '../output/print.ts'
import { openClient } from './client.ts'
import type { TeamLocation } from './team-location.ts'

/** What to do about a service that is away: wait, or try at once, as one was started; or it is not needed any more. */
export type Instead<T> = 'wait' | 'again' | { value: T }

/**
 * Carries work through restarts of the service: it is begun again with a client of the service that is there by then.
 * That none answers at the first try is thrown, so that a wrong address shows at once; not with `whileAway`, which
 * decides then, too.
 */
export async function throughRestarts<T>(
  location: TeamLocation,
  signal: AbortSignal,
  work: (client: Client) => Promise<T>,
  whileAway?: () => Promise<Instead<T>>,
): Promise<T> {
  if (whileAway === undefined) await (await openClient(location)).health()
  let isAway = false
  for (let failures = 0; ; failures++) {
    try {
      const client = await openClient(location)
      if (isAway) {
        await client.health()
        say('The service is back.')
        isAway = false
        failures = 0
      }
      return await work(client)
    } catch (error) {
      if (signal.aborted || !isTemporary(error)) throw error
      const instead = (await whileAway?.()) ?? 'wait'
      signal.throwIfAborted()
      if (typeof instead === 'object') return instead.value
      if (instead === 'again') continue
      if (!isAway) say('The service is away; waiting for it. Ctrl-C leaves.')
      isAway = true
    }
    await wait(backoff(failures), signal)
    signal.throwIfAborted()
  }
}

function say(text: string) {
  complain(paint('dim', text, 'err'))
}

function isTemporary(error: unknown): boolean {
  return error instanceof AppError && TEMPORARY.has(error.code)
}

const TEMPORARY: ReadonlySet<string> = new Set([
  'SERVICE_UNREACHABLE',
  'SERVICE_STOPPING',
  'STORE_UNAVAILABLE',
])
