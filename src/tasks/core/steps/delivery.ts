/** The way of a task to its worker: sent, taken, begun; or not taken in time, lost, tried again. */
import type { Task, TaskTimer } from '../../task.ts'
import { findCycle } from '../tree.ts'
import type { View } from '../view.ts'
import { closedUntil, failAttempt, sendAttempt, waitForCircuit } from './attempts.ts'
import { done, type Handlers, moved, refuse } from './outcome.ts'
import { begun, settle } from './resting.ts'

/** A timer that was set for something that is over, or moved, is late news. */
function isDue({ task, now }: View, kind: TaskTimer): boolean {
  return task.due?.kind === kind && task.due.at <= now
}

const stale = (task: Task) => refuse('STALE', `${task.id} does not wait for that any more`)

/** The worker has something of this task before it, or should have: what it loses now is lost work. */
function isAtWork(task: Task): boolean {
  if (task.state === 'pending') return false
  return task.unread || ((task.state === 'analyzing' || task.state === 'executing') && task.claim === null)
}

export const delivery: Pick<
  Handlers,
  | 'delegated'
  | 'acknowledged'
  | 'started'
  | 'ack_timed_out'
  | 'retry_due'
  | 'deadline_passed'
  | 'worker_exited'
  | 'worker_unreachable'
  | 'interrupted'
> = {
  delegated(view, _, settings) {
    const { task, ancestors } = view
    if (task.version > 0) return refuse('DUPLICATE', `${task.id} was delegated already`)
    if (task.depth > settings.maxDepth) {
      const message = `Delegations may be ${settings.maxDepth} deep; this would be ${task.depth}. Do it yourself, or report needs_help.`
      return refuse('TOO_DEEP', message)
    }
    const cycle = findCycle(ancestors, task.delegator, task.agent)
    if (cycle !== undefined) {
      const message = `${task.agent} would wait for itself: ${cycle.join(' → ')}. Do it yourself, or report needs_help.`
      return refuse('CYCLE', message)
    }
    const until = closedUntil(view, settings)
    if (until !== undefined) {
      const seconds = Math.ceil((until - view.now) / 1000)
      const message = `${task.agent} failed ${view.breaker.failures} times in a row. Try again in ${seconds} s, or ask another.`
      return refuse('CIRCUIT_OPEN', message)
    }
    return sendAttempt(view, settings)
  },

  acknowledged(view, _, settings) {
    const { task, now } = view
    // The receipt of an earlier attempt will do: the worker has the task, and no retry is needed.
    if (task.state === 'pending') {
      const at = now + settings.startMs
      const taken: Task = { ...moved(task, 'analyzing'), acknowledgedAt: task.acknowledgedAt ?? now }
      return done({ ...taken, unread: false, interrupting: false, due: { kind: 'deadline', at } })
    }
    if (!task.unread) return refuse('DUPLICATE', `${task.id} has nothing that waits for a receipt`)
    return done({ ...task, unread: false })
  },

  /** The first words of a turn: it has read what was sent. The task's own time begins now. */
  started(view, _, settings) {
    const { task } = view
    return done(settle(view, { ...begun(view, task), unread: false }, settings))
  },

  ack_timed_out(view, _, settings) {
    if (!isDue(view, 'ack')) return stale(view.task)
    const why = `${view.task.agent} did not take it within ${settings.ackMs / 1000} s`
    return failAttempt(view, { why })
  },

  retry_due(view, _, settings) {
    if (!isDue(view, 'retry')) return stale(view.task)
    const at = closedUntil(view, settings)
    return at === undefined ? sendAttempt(view, settings) : waitForCircuit(view, at, settings)
  },

  deadline_passed(view) {
    const { task } = view
    if (!isDue(view, 'deadline')) return stale(task)
    // Not begun: the worker's turn is on something else.
    if (task.state === 'analyzing') return failAttempt(view, { why: 'it was not begun in time' })
    return failAttempt(view, { why: 'it was not done in time', interrupt: true })
  },

  /** An idle worker may be stopped (its conversation is kept): only what it leaves undone is a failure. */
  worker_exited(view, { why }) {
    if (!isAtWork(view.task)) return done(view.task)
    return failAttempt(view, { why: `${view.task.agent} exited: ${why}` })
  },

  worker_unreachable(view, { why, recoverable }) {
    const isSent = view.task.state === 'pending' && view.task.due?.kind === 'ack'
    if (!isSent && !isAtWork(view.task)) return done(view.task)
    return failAttempt(view, { why: `${view.task.agent} cannot be reached: ${why}`, recoverable })
  },

  interrupted({ task }, { interrupt }) {
    if (!task.interrupting || task.interrupts !== interrupt) return stale(task)
    return done({ ...task, interrupting: false })
  },
}
