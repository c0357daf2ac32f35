import { existsSync } from 'node:fs'
import type { Client } from '../client/client.ts'
import { AppError } from '../model/errors.ts'
import type { StoredRuns } from '../service/stored-runs.ts'
import { openClient } from './connect.ts'
import { loadTeam } from './offline.ts'
import type { Place } from './place.ts'
import { reach } from './reach.ts'

/**
 * Asks the running service about runs, or reads the store while none runs: one that `orc run` started has ended with
 * the run.
 */
export async function reachRuns<T>(
  place: Place,
  online: (client: Client) => Promise<T>,
  offline: (runs: StoredRuns) => Promise<T>,
): Promise<T> {
  try {
    return await online(await openClient(place))
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'SERVICE_UNREACHABLE') throw error
    if (!(await hasStore(place))) throw error
  }
  const { readStoredRuns } = await import('../service/stored-runs.ts')
  return await reach(place, online, ({ store }) => offline(readStoredRuns(store, Date.now)))
}

/** Only the operator reads it, and only of the team that is meant; to look makes none. */
async function hasStore(place: Place): Promise<boolean> {
  if (process.env.ORC_TOKEN !== undefined || process.env.ORC_URL) return false
  const { store } = await loadTeam(place)
  return store.engine !== 'sqlite' || existsSync(store.file)
}
