/** What happens to the run as a whole. The only steps that look at every node. */
import { ORCHESTRATOR } from '../../base/agent.ts'
import { isSettled, type RunNode } from '../run.ts'
import { endAttempt } from './run-state.ts'
import { type Draft, type Handlers, refuse } from './transition.ts'

/** After a restart an attempt has so much time at least: what it said meanwhile, and how it ended, is known by then. */
const FOUND_WITHIN_MS = 10_000

function cancel(draft: Draft, by: string, reason: string, timedOut: boolean): void {
  draft.writeHead({ cancelled: { by, reason, at: draft.now, timedOut }, deadlineAt: null })
  for (const { name } of draft.run.graph.plan.agents) {
    const node = draft.read(name)
    if (isSettled(node.state)) continue
    if (node.state === 'asking') draft.add({ type: 'withdraw', node: name, ask: node.asks })
    const ended = endAttempt(node, draft.now, { outcome: 'cancelled', why: reason })
    draft.settle({ ...ended, progress: null }, { state: 'cancelled', reason })
  }
}

export const wholeRun: Pick<
  Handlers,
  'begun' | 'restarted' | 'run_timed_out' | 'cancelled' | 'report_written' | 'report_failed'
> = {
  begun(draft) {
    const { head, now } = draft
    if (head.begunAt !== null) return refuse('DUPLICATE', `${head.id} has begun already`)
    const { agents, timeoutMs } = draft.run.graph.plan
    draft.writeHead({ begunAt: now, deadlineAt: timeoutMs === null ? null : now + timeoutMs })
    for (const { name } of agents) {
      const node = draft.read(name)
      if (node.waitingFor === 0) draft.enqueue(node)
    }
    return undefined
  },

  /** Nobody watched for a while, so that silence means nothing. */
  restarted(draft) {
    for (const { name, stallMs } of draft.run.graph.plan.agents) {
      const node = draft.read(name)
      if (node.state !== 'running' || node.due === null) continue
      const at = Math.max(node.due.at, draft.now + FOUND_WITHIN_MS)
      const awake: RunNode = { ...node, due: { ...node.due, at } }
      draft.write(stallMs === null ? awake : { ...awake, stallAt: draft.now + stallMs })
    }
    return undefined
  },

  run_timed_out(draft) {
    const { deadlineAt } = draft.head
    if (deadlineAt === null || deadlineAt > draft.now) return refuse('STALE', 'The run has time left')
    cancel(draft, ORCHESTRATOR, 'the run was not done in time', true)
    return undefined
  },

  cancelled(draft, { by, reason }) {
    if (draft.head.cancelled !== null) return refuse('DUPLICATE', `${draft.head.id} was cancelled already`)
    cancel(draft, by, reason, false)
    return undefined
  },

  report_written(draft, { round, unconsolidated }) {
    if (!isOwed(draft, round)) return refuse('STALE', 'No such report is owed')
    draft.writeHead({ reportOwed: false, ...(unconsolidated === undefined ? {} : { unconsolidated }) })
    return undefined
  },

  report_failed(draft, { round, why }) {
    if (!isOwed(draft, round)) return refuse('STALE', 'No such report is owed')
    draft.writeHead({ reportOwed: false, reportFault: why })
    return undefined
  },
}

function isOwed({ head }: Draft, round: number): boolean {
  return head.reportOwed && head.round === round
}
