import { AppError } from '../../base/errors.ts'
import type { Client } from '../../client/client.ts'
import { openClientIfRunning } from './client.ts'
import { type Offline, withStore } from './offline.ts'
import type { TeamLocation } from './team-location.ts'

/** Enough for a large team on a slow disk to start; a service that takes longer is stuck. */
const STARTING_MS = 10_000
const LOOK_AGAIN_MS = 100

/**
 * Asks the running service, or opens the store directly while none runs. A service that is still starting holds the
 * store's lock without answering; `orc serve & orc token Worker` waits for it.
 */
export async function onlineOrOffline<T>(
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
      // The service was killed and left its service.json.
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
