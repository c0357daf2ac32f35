import { setTimeout as wait } from 'node:timers/promises'
import { AppError } from '../../base/errors.ts'
import type { Client } from '../../client/client.ts'
import type { StoredRuns } from '../../runs/routes/stored-runs.ts'
import { openClient } from './client.ts'
import { loadTeam } from './offline.ts'
import type { TeamLocation } from './team-location.ts'

/** Long enough for a service to start answering or to end, or for another command to release the store. */
const PATIENCE_MS = 1500
const LOOK_AGAIN_MS = 50

/**
 * Asks the running service about runs, or reads the store while none runs, because a service that `orc run` started
 * ends with its run. Writes nothing. Throws SERVICE_UNREACHABLE if a service holds the store but doesn't answer.
 */
export async function reachRuns<T>(
  location: TeamLocation,
  online: (client: Client) => Promise<T>,
  offline: (runs: StoredRuns) => Promise<T>,
  patienceMs = PATIENCE_MS,
): Promise<T> {
  const deadline = Date.now() + patienceMs
  for (;;) {
    try {
      return await online(await openClient(location))
    } catch (error) {
      if (!isUnreachable(error) || !mayRead()) throw error
      const read = await readStore(location, offline)
      if (read !== 'locked' && read !== 'unreadable') return read.value
      if (read === 'unreadable' || Date.now() > deadline) throw error
    }
    await wait(LOOK_AGAIN_MS)
  }
}

export function isUnreachable(error: unknown): boolean {
  return error instanceof AppError && error.code === 'SERVICE_UNREACHABLE'
}

/** Only the operator reads the store, and only when ORC_URL doesn't name a service elsewhere. */
function mayRead(): boolean {
  return process.env.ORC_TOKEN === undefined && !process.env.ORC_URL
}

async function readStore<T>(
  location: TeamLocation,
  offline: (runs: StoredRuns) => Promise<T>,
): Promise<{ value: T } | 'locked' | 'unreadable'> {
  const config = await loadTeam(location)
  const { readOffline } = await import('../../main.ts')
  const snapshot = readOffline(config)
  if (typeof snapshot === 'string') return snapshot
  const { readStoredRuns } = await import('../../runs/routes/stored-runs.ts')
  try {
    return { value: await offline(readStoredRuns(snapshot.reader, Date.now)) }
  } finally {
    snapshot.close()
  }
}
