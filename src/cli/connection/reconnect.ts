import { AppError } from '../../base/errors.ts'
import { backoff, wait } from '../../client/backoff.ts'
import type { Client } from '../../client/client.ts'
import { complain, paint } from '../output/print.ts'
import { openClient } from './client.ts'
import type { TeamLocation } from './team-location.ts'

/** Reaction to an unreachable service: wait and retry, retry at once (a new one was started), or return a value without it. */
export type WhenUnreachable<T> = 'wait' | 'again' | { value: T }

/**
 * Repeats work across restarts of the service, each time with a client of the service that runs by then. If the first
 * attempt finds no service, that error is thrown, so a wrong address shows at once; with `whileAway`, that decides.
 */
export async function throughRestarts<T>(
  location: TeamLocation,
  signal: AbortSignal,
  work: (client: Client) => Promise<T>,
  whileAway?: () => Promise<WhenUnreachable<T>>,
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
      if (!isAway) say('The service is unreachable; waiting for it. Press Ctrl-C to leave.')
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
