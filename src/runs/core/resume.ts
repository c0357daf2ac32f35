import type { Result } from '../../base/result.ts'
import type { RunNode } from '../run.ts'
import { createRun, type Run, type RunOptions } from './run-state.ts'
import { type RunRefusal, refuse } from './transition.ts'

type Resumption = Omit<RunOptions, 'id'>

/**
 * Begins another round of a run that ended, with the current plan. A completed agent does not run again if its inputs are
 * the same: each agent is prepared, and the hash decides. The `begun` event starts the round. A run that has not ended
 * continues from `pendingEffects` instead.
 */
export function resumeRun(
  run: Run,
  { plan, now, attended = run.head.attended }: Resumption,
): Result<Run, RunRefusal> {
  const { head } = run
  if (head.outcome === null) {
    return { ok: false, error: refuse('RUN_RUNS', `${head.id} has not ended`) }
  }
  const fresh = createRun({ id: head.id, plan, now, attended })
  for (const node of fresh.nodes.values()) {
    const before = run.nodes.get(node.name)
    if (before !== undefined) fresh.nodes.set(node.name, { ...node, ...carried(before) })
  }
  fresh.head = {
    ...fresh.head,
    createdAt: head.createdAt,
    round: head.round + 1,
    version: head.version + 1,
    lastQueued: head.lastQueued,
  }
  return { ok: true, value: fresh }
}

/** Keeps the counters, so that keys of effects stay unique. */
function carried(before: RunNode): Partial<RunNode> {
  const { preparations, attempt, fixes, asks, corrected, attempts } = before
  return { preparations, attempt, fixes, asks, corrected, attempts, kept: before.result ?? before.kept }
}
