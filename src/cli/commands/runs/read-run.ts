import { setTimeout as wait } from 'node:timers/promises'
import { reachRuns } from '../../connection/stored-runs.ts'
import type { TeamLocation } from '../../connection/team-location.ts'
import type { RunShown } from './run-state.ts'

/** A service that ends gathers what it has begun first. */
const ENDING_MS = 10_000

/** Not by the line from before: the service may have come back at another address, or ended with another's run. */
export function lookAtRun(location: TeamLocation, id: string): Promise<{ run: RunShown; isServed: boolean }> {
  return reachRuns<{ run: RunShown; isServed: boolean }>(
    location,
    async (client) => ({ run: await client.run(id), isServed: true }),
    async (stored) => ({ run: await stored.show(id), isServed: false }),
    ENDING_MS,
  )
}

/** It has not ended, or its report is not written yet. */
export function isOpen({ state, report, report_fault }: RunShown): boolean {
  return state === 'running' || (report === undefined && report_fault === undefined)
}

const REPORT_MS = 10_000
const LOOK_AGAIN_MS = 25

/** The outputs are gathered and the report is written after the end; a service that ends with the run must be let. */
export async function untilReported(location: TeamLocation, id: string): Promise<RunShown> {
  const deadline = Date.now() + REPORT_MS
  for (;;) {
    const { run, isServed } = await lookAtRun(location, id)
    // Without a service nobody goes on with it.
    if (!isOpen(run) || !isServed || Date.now() > deadline) return run
    await wait(LOOK_AGAIN_MS)
  }
}
