import { AppError } from '../../base/errors.ts'
import type { Client } from '../../client/client.ts'
import { openClientIfRunning } from './client.ts'
import { type Offline, withStore } from './offline.ts'
import type { TeamLocation } from './team-location.ts'

/** A service that starts with a large team or a slow disk; longer than this it is not starting but stuck. */
const STARTING_MS = 10_000
const LOOK_AGAIN_MS = 100

/**
 * Asks the running service, or works on the store itself while none runs. One that is just starting holds the
 * store and does not answer yet: `orc serve & orc token Worker` waits for it.
 */
export async function reach<T>(
  location: TeamLocation,
  online: (client: Client) => Promise<T>,
  offline: (store: Offline) => Promise<T>,
): Promise<T> {
  const deadline = Date.now() + STARTING_MS
  for (;;) {
    const client = await openClientIfRunning(location)
    try {
      if (client !== undefined) return await online(client)
    } catch (error) {
      // It was killed, and its note of where it listens is still there.
      if ((error as { code?: unknown }).code !== 'SERVICE_UNREACHABLE') throw error
    }
    try {
      return await withStore(location, offline)
    } catch (error) {
      const starting = error instanceof AppError && error.code === 'STORE_LOCKED'
      if (!starting || Date.now() > deadline) throw error
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS))
  }
}
