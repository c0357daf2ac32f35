import { working } from './attempt-events.ts'
import type { RunEvent } from './event.ts'
import { recovery } from './recovery-events.ts'
import { wholeRun } from './run-events.ts'
import type { Run } from './run-state.ts'
import {
  beginTransition,
  type RunHandlers,
  type RunReduced,
  type RunRefusal,
  refuse,
  type Transition,
} from './transition.ts'

const HANDLERS: RunHandlers = { ...wholeRun, ...working, ...recovery }

/**
 * Returns what an event changes in a run and the effects that follow from it, or a refusal for late, duplicate and
 * unknown events. Pure: `commit` applies the change. Its cost grows with the edges of the nodes concerned, not with the
 * size of the run.
 */
export function reduce(run: Run, event: RunEvent, now: number): RunReduced {
  const early = refuseEarly(run, event)
  if (early !== undefined) return { ok: false, refusal: early }
  const transition = beginTransition(run, now)
  const refusal = handle(transition, event)
  return refusal === undefined ? transition.conclude() : { ok: false, refusal }
}

function refuseEarly({ head, nodes }: Run, event: RunEvent): RunRefusal | undefined {
  if ('node' in event && !nodes.has(event.node)) {
    return refuse('UNKNOWN_NODE', `There is no agent ${event.node}`)
  }
  if (head.outcome !== null && event.type !== 'report_written' && event.type !== 'report_failed') {
    return refuse('RUN_ENDED', `${head.id} has ended: ${head.outcome}`)
  }
  if (head.begunAt === null && event.type !== 'begun') return refuse('STALE', `${head.id} has not begun`)
  return undefined
}

function handle<E extends RunEvent>(transition: Transition, event: E): RunRefusal | undefined {
  // The table is total, but TypeScript can't follow that the handler found is the one for this very event.
  const handler = HANDLERS[event.type] as (transition: Transition, event: E) => RunRefusal | undefined
  return handler(transition, event)
}
