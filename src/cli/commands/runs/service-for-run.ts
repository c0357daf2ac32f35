import { setTimeout as wait } from 'node:timers/promises'
import { AppError } from '../../../base/errors.ts'
import { isRunning } from '../../../base/process.ts'
import type { Client } from '../../../client/client.ts'
import { openClientIfRunning } from '../../connection/client.ts'
import { noteOfRuns } from '../../connection/connection.ts'
import { loadTeam } from '../../connection/offline.ts'
import { makeTeamWithoutAgents } from '../../connection/plan-team.ts'
import { startDetached } from '../../connection/start-service.ts'
import { isUnreachable } from '../../connection/stored-runs.ts'
import type { TeamLocation } from '../../connection/team-location.ts'
import { complain, paint } from '../../output/print.ts'
import { showWorking } from '../../output/progress.ts'
import type { Invocation } from '../../verb.ts'

export interface ServiceForRun {
  client: Client
  /** The process that this command started for the run, and that ends with it. */
  ours?: number
}

/** Uses the running service or starts one in the background, never in this process: a run must outlive its terminal. */
export async function serviceForRun(invocation: Invocation): Promise<ServiceForRun> {
  await makeTeamWithoutAgents(invocation.location)
  const running = await openAnswering(invocation)
  if (running !== undefined) return { client: running }
  const working = showWorking('starting a service for this run')
  try {
    const { client, facts, isOthers } = await startDetached(invocation, ['--for-runs'])
    return isOthers ? { client } : { client, ours: facts.pid }
  } catch (error) {
    // Another `orc run` may have started the service first.
    const other = await openAnswering(invocation)
    if (other === undefined) throw error
    return { client: other }
  } finally {
    working.end()
  }
}

async function openAnswering({ location }: Invocation): Promise<Client | undefined> {
  const client = await openClientIfRunning(location)
  try {
    await client?.health()
    return client
  } catch (error) {
    // ORC_URL names one particular service; don't start another.
    if (process.env.ORC_URL !== undefined) throw error
    return undefined
  }
}

/** Something that kills the service this often does it on purpose. */
const MOST_RESTARTS = 3

/**
 * Restarts the service of a watched run after it was killed, if `orc run` started it. A service that a person runs, or
 * has stopped, is left alone.
 */
export function keepServiceForRun(first: ServiceForRun, invocation: Invocation, comeBack: () => string) {
  let service = first
  let restarts = 0
  return {
    current: () => service,
    async startAgain(): Promise<boolean> {
      if (!(await wasKilled(invocation.location))) return false
      if (++restarts > MOST_RESTARTS) {
        throw new AppError('SERVICE_UNREACHABLE', `The service was killed ${restarts} times`, {
          hint: `To start it once more: ${comeBack()}`,
        })
      }
      complain(paint('dim', 'The service was killed; starting it again.', 'err'))
      try {
        service = await serviceForRun(invocation)
      } catch (error) {
        // The service may have been killed while starting, which counts as another restart.
        if (!isUnreachable(error) || restarts === MOST_RESTARTS) throw error
      }
      return true
    },
  }
}

export type KeptService = ReturnType<typeof keepServiceForRun>

/** The pid alone proves nothing (a zombie, or a reused number), but a live service holds the store's lock. */
async function wasKilled(location: TeamLocation): Promise<boolean> {
  const noted = noteOfRuns(location)
  if (noted === undefined || !noted.isAlive) return noted !== undefined
  const { readOffline } = await import('../../../main.ts')
  const snapshot = readOffline(await loadTeam(location))
  if (typeof snapshot === 'string') return false
  snapshot.close()
  return true
}

/** Longer than any agent takes to stop. */
const PATIENCE_MS = 60_000

/** Stops the service this command started, unless other runs have begun meanwhile. */
export async function endServiceOfRun({ ours }: ServiceForRun, location: TeamLocation): Promise<void> {
  const client = ours === undefined ? undefined : await openClientIfRunning(location)
  const state = await client?.state().catch(() => undefined)
  if (client === undefined || ours === undefined || state?.pid !== ours) return
  try {
    const { runs } = await client.runs({ state: 'open' })
    if (runs.length > 0) return
    await client.stop('end')
  } catch (error) {
    // The service has already ended by itself, or another watcher stopped it.
    if (!isUnreachable(error)) throw error
  }
  const deadline = Date.now() + PATIENCE_MS
  while (isRunning(ours) && Date.now() < deadline) await wait(20)
}
