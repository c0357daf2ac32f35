import { type Decision, type Refusal, refuse } from './decision.ts'
import { type Draft, openDraft } from './draft.ts'
import type { Happening } from './happening.ts'
import type { Run } from './run.ts'
import type { Handlers } from './steps/handlers.ts'
import { recovery } from './steps/recovery.ts'
import { wholeRun } from './steps/whole-run.ts'
import { working } from './steps/working.ts'

const HANDLERS: Handlers = { ...wholeRun, ...working, ...recovery }

/**
 * What a happening does to a run: what changes, and what must be done about it. Pure; `commit` takes it over once it is
 * stored. Late, doubled and foreign news is refused, nothing is thrown for it and nothing is done twice. Its cost is the
 * number of edges of the nodes concerned, not the size of the run.
 */
export function decide(run: Run, event: Happening, now: number): Decision | Refusal {
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

function handle<E extends Happening>(draft: Draft, event: E): Refusal | undefined {
  // The table is total; TypeScript can't follow that the handler found is the one for this very event.
  const handler = HANDLERS[event.type] as (draft: Draft, event: E) => Refusal | undefined
  return handler(draft, event)
}
