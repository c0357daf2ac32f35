import { ORCHESTRATOR } from '../../../base/agent.ts'
import type { Task } from '../../task.ts'
import { allowedAt, breakerState } from '../breaker.ts'
import type { StoreEffect } from '../effect.ts'
import { afterFailure } from '../retries.ts'
import type { TaskSettings } from '../settings.ts'
import type { View } from '../view.ts'
import { delegateText } from '../wording.ts'
import { end, withdrawAll } from './ending.ts'
import { also, type Done, done } from './outcome.ts'
import { sendToWorker } from './worker.ts'

interface Failed {
  why: string
  recoverable?: boolean
  /** The worker is still at it and must stop. */
  interrupt?: boolean
}

/**
 * A failed attempt is followed by another after a pause, or by the end and a person (C7). Children stay: those that
 * have ended need not be done again, and the others have clocks of their own.
 */
export function failAttempt(view: View, { why, recoverable = true, interrupt = false }: Failed): Done {
  const { task, now } = view
  const failure: StoreEffect = { type: 'record_outcome', agent: task.agent, outcome: 'failure' }
  const next = afterFailure({ ...task, recoverable })
  const failed: Task = { ...task, failures: [...task.failures, { attempt: task.attempt, at: now, why }] }
  if (!next.retry) {
    const reason = `${why}; ${next.why}`
    return also(end(view, failed, { state: 'failed', reason, by: ORCHESTRATOR, escalate: true }), failure)
  }
  const again: Task = {
    ...failed,
    // Not an edge of the table: a retry is a new attempt, which begins anew (C6).
    state: 'pending',
    attempt: task.attempt + 1,
    due: { kind: 'retry', at: now + next.delayMs },
    remainingMs: task.timeoutMs,
    questions: [],
    claim: null,
    reminders: 0,
    unread: false,
    interrupts: task.interrupts + (interrupt ? 1 : 0),
    interrupting: task.interrupting || interrupt,
  }
  const text = `attempt ${task.attempt} of ${task.maxAttempts} failed: ${why}`
  return done(again, failure, ...withdrawAll(task), { type: 'note', task: task.id, text })
}

/** Puts the task before its worker. An interrupt of the attempt before would now hit the new one. */
export function sendAttempt(view: View, settings: TaskSettings): Done {
  const { now, breaker } = view
  const task: Task = {
    ...view.task,
    interrupting: false,
    due: { kind: 'ack', at: now + settings.ackMs },
  }
  const sent = sendToWorker(task, 'delegate', delegateText(task, view.children))
  const isTrial = breakerState(breaker, now, settings.breaker) === 'half_open'
  const trial: StoreEffect[] = isTrial
    ? [{ type: 'record_outcome', agent: task.agent, outcome: 'trial' }]
    : []
  return done(sent.task, ...trial, sent.effect)
}

/**
 * While the circuit is open, nothing is sent: that is no attempt, and none is used up. Trials go one at a time, so that a
 * task may wait behind many others; not for ever (S2.1).
 */
export function waitForCircuit(view: View, at: number, settings: TaskSettings): Done {
  const { task } = view
  const { agent } = task
  const last = task.failures.at(-1)
  // Not the time of the failure: while everything, or the task, is held, nobody waits.
  const since = task.due?.since ?? view.now
  if (at - since > settings.startMs) {
    const minutes = settings.startMs / 60_000
    const reason = `${agent} failed too often of late, and was not tried again within ${minutes} min; last: ${last?.why}`
    return end(view, task, { state: 'failed', reason, by: ORCHESTRATOR, escalate: true })
  }
  const text = `${agent} failed too often of late: attempt ${task.attempt} waits until it is tried again`
  // Said once for each attempt, however often it is put off.
  const isFirst = task.due?.since === undefined
  const notes: StoreEffect[] = isFirst ? [{ type: 'note', task: task.id, text }] : []
  return done({ ...task, due: { kind: 'retry', at, since } }, ...notes)
}

/** When the circuit breaker lets the next task through to this worker, if that is not now. */
export function closedUntil({ breaker, now }: View, settings: TaskSettings): number | undefined {
  const at = allowedAt(breaker, now, settings.breaker)
  return at > now ? at : undefined
}
