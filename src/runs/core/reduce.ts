import { working } from './attempt-events.ts'
import type { RunEvent } from './event.ts'
import { recovery } from './recovery-events.ts'
import { wholeRun } from './run-events.ts'
import type { Run } from './run-state.ts'
import { type Decision, type Draft, type Handlers, openDraft, type Refusal, refuse } from './transition.ts'

const HANDLERS: Handlers = { ...wholeRun, ...working, ...recovery }

/**
 * Returns what an event changes in a run and the effects that follow from it, or a refusal for late, duplicate and
 * unknown events. Pure: `commit` applies the result. Its cost grows with the edges of the nodes concerned, not with the
 * size of the run.
 */
export function reduce(run: Run, event: RunEvent, now: number): Decision | Refusal {
  const { head, nodes } = run
  if ('node' in event && !nodes.has(event.node))
    return refuse('UNKNOWN_NODE', `There is no agent ${event.node}`)
  if (head.outcome !== null && event.type !== 'report_written' && event.type !== 'report_failed') {
    return refuse('RUN_ENDED', `${head.id} has ended: ${head.outcome}`)
  }
  if (head.begunAt === null && event.type !== 'begun') return refuse('STALE', `${head.id} has not begun`)
  const draft = openDraft(run, now)
  return handle(draft, event) ?? draft.conclude()
}

function handle<E extends RunEvent>(draft: Draft, event: E): Refusal | undefined {
  // The table is total; TypeScript can't follow that the handler found is the one for this very event.
  const handler = HANDLERS[event.type] as (draft: Draft, event: E) => Refusal | undefined
  return handler(draft, event)
}
