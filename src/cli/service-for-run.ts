import { setTimeout as wait } from 'node:timers/promises'
import type { Client } from '../client/client.ts'
import { isRunning } from '../programs/running-process.ts'
import { openClientIfRunning } from './connect.ts'
import { startDetached } from './detached.ts'
import { makeTeamOfNobody } from './plan-place.ts'
import type { Invocation } from './verb.ts'

export interface ServiceForRun {
  client: Client
  /** It was started for this run, and ends with it. */
  isOurs: boolean
}

/**
 * The running service, or one in the background: a run must outlive the terminal that started it, so that it is never
 * in this process.
 */
export async function serviceForRun(invocation: Invocation): Promise<ServiceForRun> {
  const running = await openAnswering(invocation)
  if (running !== undefined) return { client: running, isOurs: false }
  makeTeamOfNobody(invocation.place)
  try {
    const { client } = await startDetached(invocation)
    return { client, isOurs: true }
  } catch (error) {
    // Another `orc run` may have been faster.
    const other = await openAnswering(invocation)
    if (other === undefined) throw error
    return { client: other, isOurs: false }
  }
}

async function openAnswering({ place }: Invocation): Promise<Client | undefined> {
  const client = await openClientIfRunning(place)
  try {
    await client?.health()
    return client
  } catch (error) {
    // Whoever named a service means that one.
    if (process.env.ORC_URL !== undefined) throw error
    return undefined
  }
}

/** Longer than any agent takes to end. */
const PATIENCE_MS = 60_000

/** Nothing is left running that nobody asked for; other runs that began meanwhile are not taken down with it. */
export async function endServiceOfRun({ client, isOurs }: ServiceForRun): Promise<void> {
  if (!isOurs) return
  const { runs } = await client.runs({ state: 'open' })
  if (runs.length > 0) return
  const { pid } = await client.stop('end')
  const deadline = Date.now() + PATIENCE_MS
  while (isRunning(pid) && Date.now() < deadline) await wait(20)
}
