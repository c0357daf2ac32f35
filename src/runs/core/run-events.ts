/** Events of the run as a whole: the only ones that visit every node. */
import { ORCHESTRATOR } from '../../base/agent.ts'
import { isSettled, type RunNode } from '../run.ts'
import { endAttempt } from './run-state.ts'
import { type RunHandlers, refuse, type Transition } from './transition.ts'

/** Shortest time left for an attempt after a restart, to find out what it reported and how it ended. */
const FOUND_WITHIN_MS = 10_000

function cancel(transition: Transition, by: string, reason: string, timedOut: boolean): void {
  transition.writeHead({ cancelled: { by, reason, at: transition.now, timedOut }, deadlineAt: null })
  for (const { name } of transition.run.graph.plan.agents) {
    const node = transition.read(name)
    if (isSettled(node.state)) continue
    if (node.state === 'asking') transition.add({ type: 'withdraw', node: name, ask: node.asks })
    const ended = endAttempt(node, transition.now, { outcome: 'cancelled', why: reason })
    transition.settle({ ...ended, progress: null }, { state: 'cancelled', reason })
  }
}

export const wholeRun: Pick<
  RunHandlers,
  'begun' | 'restarted' | 'run_timed_out' | 'cancelled' | 'report_written' | 'report_failed'
> = {
  begun(transition) {
    const { head, now } = transition
    if (head.begunAt !== null) return refuse('DUPLICATE', `${head.id} has begun already`)
    const { agents, timeoutMs } = transition.run.graph.plan
    transition.writeHead({ begunAt: now, deadlineAt: timeoutMs === null ? null : now + timeoutMs })
    for (const { name } of agents) {
      const node = transition.read(name)
      if (node.waitingFor === 0) transition.enqueue(node)
    }
    return undefined
  },

  /** No service watched for a while, so silence does not count. */
  restarted(transition) {
    for (const { name, stallMs } of transition.run.graph.plan.agents) {
      const node = transition.read(name)
      if (node.state !== 'running' || node.due === null) continue
      const at = Math.max(node.due.at, transition.now + FOUND_WITHIN_MS)
      const awake: RunNode = { ...node, due: { ...node.due, at } }
      transition.write(stallMs === null ? awake : { ...awake, stallAt: transition.now + stallMs })
    }
    return undefined
  },

  run_timed_out(transition) {
    const { deadlineAt } = transition.head
    if (deadlineAt === null || deadlineAt > transition.now) return refuse('STALE', 'The run has time left')
    cancel(transition, ORCHESTRATOR, 'the run timed out', true)
    return undefined
  },

  cancelled(transition, { by, reason }) {
    if (transition.head.cancelled !== null)
      return refuse('DUPLICATE', `${transition.head.id} was cancelled already`)
    cancel(transition, by, reason, false)
    return undefined
  },

  report_written(transition, { round, unconsolidated }) {
    if (!isOwed(transition, round)) return refuse('STALE', 'No such report is owed')
    transition.writeHead({ reportOwed: false, ...(unconsolidated === undefined ? {} : { unconsolidated }) })
    return undefined
  },

  report_failed(transition, { round, why }) {
    if (!isOwed(transition, round)) return refuse('STALE', 'No such report is owed')
    transition.writeHead({ reportOwed: false, reportFault: why })
    return undefined
  },
}

function isOwed({ head }: Transition, round: number): boolean {
  return head.reportOwed && head.round === round
}
