/** Attempts of a task: how it reaches its worker, its deadline, its retries, and the circuit breaker. */
import { ORCHESTRATOR } from '../../base/agent.ts'
import { DEFAULT_RETRIES, pauseAfter } from '../../base/backoff.ts'
import type { Task, TaskTimer } from '../task.ts'
import { allowedAt, breakerState } from './circuit-breaker.ts'
import type { TaskStoreEffect } from './events-and-effects.ts'
import { delegateText } from './message-texts.ts'
import { refuse } from './refusal.ts'
import { findCycle, type TaskSnapshot } from './snapshot.ts'
import {
  type Accepted,
  accept,
  end,
  moveTo,
  prepend,
  sendToWorker,
  started,
  type TaskEventHandlers,
  updateState,
  withdrawAll,
} from './task-changes.ts'

/** False for a timer that was cleared or moved to another time. */
function isDue({ task, now }: TaskSnapshot, kind: TaskTimer): boolean {
  return task.due?.kind === kind && task.due.at <= now
}

const stale = (task: Task) => refuse('STALE', `${task.id} no longer waits for that`)

/** Whether work is lost if the worker exits now: it works on the task, or has unread messages about it. */
function isAtWork(task: Task): boolean {
  if (task.state === 'pending') return false
  return task.unread || ((task.state === 'analyzing' || task.state === 'executing') && task.claim === null)
}

/** Delivery of a task to its worker: sent, acknowledged, started; or timed out, lost and retried. */
export const deliveryHandlers: Pick<
  TaskEventHandlers,
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
  delegated(snapshot) {
    const { task, ancestors, settings } = snapshot
    if (task.version > 0) return refuse('DUPLICATE', `${task.id} was already delegated`)
    if (task.depth > settings.maxDepth) {
      const message = `Delegations may be ${settings.maxDepth} deep; this would be ${task.depth}. Do it yourself, or report needs_help.`
      return refuse('TOO_DEEP', message)
    }
    const cycle = findCycle(ancestors, task.delegator, task.agent)
    if (cycle !== undefined) {
      const message = `${task.agent} would wait for itself: ${cycle.join(' → ')}. Do it yourself, or report needs_help.`
      return refuse('CYCLE', message)
    }
    const until = closedUntil(snapshot)
    if (until !== undefined) {
      const seconds = Math.ceil((until - snapshot.now) / 1000)
      const message = `${task.agent} failed ${snapshot.breaker.failures} times in a row. Try again in ${seconds} s, or ask another.`
      return refuse('CIRCUIT_OPEN', message)
    }
    return sendAttempt(snapshot)
  },

  acknowledged({ task, now, settings }) {
    // A receipt of an earlier attempt counts too: the worker has the task, and needs no retry.
    if (task.state === 'pending') {
      const at = now + settings.startMs
      const taken: Task = { ...moveTo(task, 'analyzing'), acknowledgedAt: task.acknowledgedAt ?? now }
      return accept({ ...taken, unread: false, interrupting: false, due: { kind: 'deadline', at } })
    }
    if (!task.unread) return refuse('DUPLICATE', `${task.id} has no unacknowledged message`)
    return accept({ ...task, unread: false })
  },

  /** A turn with the task has begun. The task's own timeout starts now. */
  started(snapshot) {
    return accept(updateState(snapshot, { ...started(snapshot, snapshot.task), unread: false }))
  },

  ack_timed_out(snapshot) {
    if (!isDue(snapshot, 'ack')) return stale(snapshot.task)
    const why = `${snapshot.task.agent} did not take it within ${snapshot.settings.ackMs / 1000} s`
    return failAttempt(snapshot, { why })
  },

  retry_due(snapshot) {
    if (!isDue(snapshot, 'retry')) return stale(snapshot.task)
    const at = closedUntil(snapshot)
    return at === undefined ? sendAttempt(snapshot) : waitForCircuit(snapshot, at)
  },

  deadline_passed(snapshot) {
    const { task } = snapshot
    if (!isDue(snapshot, 'deadline')) return stale(task)
    // The worker's turn is on another task, and must not be interrupted for this one.
    if (task.state === 'analyzing') return failAttempt(snapshot, { why: 'it was not begun in time' })
    return failAttempt(snapshot, { why: 'it was not done in time', interrupt: true })
  },

  /** An idle worker may be stopped, because it resumes its conversation later. Only unfinished work is a failure. */
  worker_exited(snapshot, { why }) {
    if (!isAtWork(snapshot.task)) return accept(snapshot.task)
    return failAttempt(snapshot, { why: `${snapshot.task.agent} exited: ${why}` })
  },

  worker_unreachable(snapshot, { why, recoverable }) {
    const isSent = snapshot.task.state === 'pending' && snapshot.task.due?.kind === 'ack'
    if (!isSent && !isAtWork(snapshot.task)) return accept(snapshot.task)
    return failAttempt(snapshot, { why: `${snapshot.task.agent} cannot be reached: ${why}`, recoverable })
  },

  interrupted({ task }, { interrupt }) {
    if (!task.interrupting || task.interrupts !== interrupt) return stale(task)
    return accept({ ...task, interrupting: false })
  },
}

interface LostAttempt {
  why: string
  recoverable?: boolean
  /** The worker still works on it and must stop. */
  interrupt?: boolean
}

/**
 * Schedules another attempt after a pause, or ends the task and escalates to a person (C7). Children stay: ended ones
 * need no second run, and the others have their own timers.
 */
function failAttempt(
  snapshot: TaskSnapshot,
  { why, recoverable = true, interrupt = false }: LostAttempt,
): Accepted {
  const { task, now } = snapshot
  const failure: TaskStoreEffect = { type: 'record_outcome', agent: task.agent, outcome: 'failure' }
  const last = whyLast(task, recoverable)
  const failed: Task = { ...task, failures: [...task.failures, { attempt: task.attempt, at: now, why }] }
  if (last !== undefined) {
    const reason = `${why}; ${last}`
    return prepend(
      end(snapshot, failed, { state: 'failed', reason, by: ORCHESTRATOR, escalate: true }),
      failure,
    )
  }
  const again: Task = {
    ...failed,
    // Not a transition of the table: a retry is a new attempt (C6).
    state: 'pending',
    attempt: task.attempt + 1,
    due: { kind: 'retry', at: now + pauseAfter(task.attempt) },
    remainingMs: task.timeoutMs,
    questions: [],
    claim: null,
    reminders: 0,
    unread: false,
    interrupts: task.interrupts + (interrupt ? 1 : 0),
    interrupting: task.interrupting || interrupt,
  }
  const text = `attempt ${task.attempt} of ${task.maxAttempts} failed: ${why}`
  return accept(again, failure, ...withdrawAll(task.questions), { type: 'note', text })
}

/** Clears a pending interrupt of the previous attempt, because it would hit the new one. */
function sendAttempt(snapshot: TaskSnapshot): Accepted {
  const { now, breaker, settings } = snapshot
  const task: Task = {
    ...snapshot.task,
    interrupting: false,
    due: { kind: 'ack', at: now + settings.ackMs },
  }
  const sent = sendToWorker(task, 'delegate', delegateText(task, snapshot.children))
  const isTrial = breakerState(breaker, now, settings.breaker) === 'half_open'
  const trial: TaskStoreEffect[] = isTrial
    ? [{ type: 'record_outcome', agent: task.agent, outcome: 'trial' }]
    : []
  return accept(sent.task, ...trial, sent.effect)
}

/**
 * While the circuit is open the task waits without using up an attempt. Trials run one at a time, so a task may wait
 * behind many others, for `startMs` at most (S2.1).
 */
function waitForCircuit(snapshot: TaskSnapshot, at: number): Accepted {
  const { task, settings } = snapshot
  const { agent } = task
  const last = task.failures.at(-1)
  // Not the time of the failure, because the task may have been held since.
  const since = task.due?.since ?? snapshot.now
  if (at - since > settings.startMs) {
    const minutes = settings.startMs / 60_000
    const reason = `${agent} failed too often recently, and was not tried again within ${minutes} min; last: ${last?.why}`
    return end(snapshot, task, { state: 'failed', reason, by: ORCHESTRATOR, escalate: true })
  }
  const text = `${agent} failed too often recently: attempt ${task.attempt} waits until the agent is tried again`
  // One note for each attempt, however often it is postponed.
  const isFirst = task.due?.since === undefined
  const notes: TaskStoreEffect[] = isFirst ? [{ type: 'note', text }] : []
  return accept({ ...task, due: { kind: 'retry', at, since } }, ...notes)
}

/** When the worker's circuit breaker passes the next task, if not now. */
function closedUntil({ breaker, now, settings }: TaskSnapshot): number | undefined {
  const at = allowedAt(breaker, now, settings.breaker)
  return at > now ? at : undefined
}

/** Three retries make four attempts. */
export const DEFAULT_MAX_ATTEMPTS = 1 + DEFAULT_RETRIES

/** Why no attempt follows a failed one (C7). */
function whyLast({ attempt, maxAttempts }: Task, recoverable: boolean): string | undefined {
  if (!recoverable) return 'retrying would not help'
  if (attempt < maxAttempts) return undefined
  return attempt === 1 ? 'the task has no retries' : `${attempt} attempts failed`
}
