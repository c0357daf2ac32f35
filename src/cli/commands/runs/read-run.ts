import { setTimeout as wait } from 'node:timers/promises'
import { reachRuns } from '../../connection/stored-runs.ts'
import type { TeamLocation } from '../../connection/team-location.ts'
import type { RunShown } from './run-state.ts'

/** A stopping service first collects the outputs of its runs. */
const ENDING_MS = 10_000

/** Opens a new connection each time: the service may have restarted at another address, or ended. */
export function readRun(location: TeamLocation, id: string): Promise<{ run: RunShown; isServed: boolean }> {
  return reachRuns<{ run: RunShown; isServed: boolean }>(
    location,
    async (client) => ({ run: await client.run(id), isServed: true }),
    async (stored) => ({ run: await stored.show(id), isServed: false }),
    ENDING_MS,
  )
}

/** True until the run has ended and its report is written. */
export function isOpen({ state, report, report_fault }: RunShown): boolean {
  return state === 'running' || (report === undefined && report_fault === undefined)
}

const REPORT_MS = 10_000
const LOOK_AGAIN_MS = 25

/** Waits for the outputs and the report, which the service writes after the run has ended. */
export async function untilReported(location: TeamLocation, id: string): Promise<RunShown> {
  const deadline = Date.now() + REPORT_MS
  for (;;) {
    const { run, isServed } = await readRun(location, id)
    // Without a service the run doesn't change any more.
    if (!isOpen(run) || !isServed || Date.now() > deadline) return run
    await wait(LOOK_AGAIN_MS)
  }
}
