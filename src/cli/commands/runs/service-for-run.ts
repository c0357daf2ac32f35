import { setTimeout as wait } from 'node:timers/promises'
import { AppError } from '../../../base/errors.ts'
import { isRunning } from '../../../base/process.ts'
import type { Client } from '../../../client/client.ts'
import { openClientIfRunning } from '../../connection/client.ts'
import { noteOfRuns } from '../../connection/connection.ts'
import { loadTeam } from '../../connection/offline.ts'
import { makeTeamOfNobody } from '../../connection/plan-team.ts'
import { startDetached } from '../../connection/start-service.ts'
import { isUnreachable } from '../../connection/stored-runs.ts'
import type { TeamLocation } from '../../connection/team-location.ts'
import { complain, paint } from '../../output/print.ts'
import { showWorking } from '../../output/progress.ts'
import type { Invocation } from '../../verb.ts'

export interface ServiceForRun {
  client: Client
  /** The process that was started for this run, and ends with it. */
  ours?: number
}

/**
 * Returns the running service, or starts one in the background: a run must outlive the terminal that started it, so it
 * never runs in this process.
 */
export async function serviceForRun(invocation: Invocation): Promise<ServiceForRun> {
  await makeTeamOfNobody(invocation.location)
  const running = await openAnswering(invocation)
  if (running !== undefined) return { client: running }
  const working = showWorking('starting a service for this run')
  try {
    const { client, facts, isOthers } = await startDetached(invocation, ['--for-runs'])
    return isOthers ? { client } : { client, ours: facts.pid }
  } catch (error) {
    // Another `orc run` may have been faster.
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
    // ORC_URL names a service, so do not start another one.
    if (process.env.ORC_URL !== undefined) throw error
    return undefined
  }
}

/** Gives up after this many restarts, because something keeps killing the service. */
const MOST_RESTARTS = 3

/**
 * The service of a watched run. If `orc run` started it, nothing else would restart it after it was killed; any other
 * service is left alone.
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
          hint: `${comeBack()} starts it once more.`,
        })
      }
      complain(paint('dim', 'The service was killed; it is started again.', 'err'))
      try {
        service = await serviceForRun(invocation)
      } catch (error) {
        // Being killed during startup counts like any other time.
        if (!isUnreachable(error) || restarts === MOST_RESTARTS) throw error
      }
      return true
    },
  }
}

export type KeptService = ReturnType<typeof keepServiceForRun>

/** The pid may belong to a zombie or another process, so check whether something holds the store. */
async function wasKilled(location: TeamLocation): Promise<boolean> {
  const noted = noteOfRuns(location)
  if (noted === undefined || !noted.isAlive) return noted !== undefined
  const { readOffline } = await import('../../../main.ts')
  const snapshot = readOffline(await loadTeam(location))
  if (typeof snapshot === 'string') return false
  snapshot.close()
  return true
}

/** Longer than any agent takes to end. */
const PATIENCE_MS = 60_000

/** Stops a service that was started for this run, unless other runs are open. */
export async function endServiceOfRun({ ours }: ServiceForRun, location: TeamLocation): Promise<void> {
  const client = ours === undefined ? undefined : await openClientIfRunning(location)
  const state = await client?.state().catch(() => undefined)
  if (client === undefined || ours === undefined || state?.pid !== ours) return
  try {
    const { runs } = await client.runs({ state: 'open' })
    if (runs.length > 0) return
    await client.stop('end')
  } catch (error) {
    // The service ended by itself after its last run, or another `orc run` stopped it.
    if (!isUnreachable(error)) throw error
  }
  const deadline = Date.now() + PATIENCE_MS
  while (isRunning(ours) && Date.now() < deadline) await wait(20)
}
