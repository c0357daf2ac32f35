import { OPERATOR, ORCHESTRATOR } from '../../base/agent.ts'
import type { Reduced } from '../../base/result.ts'
import { DEFAULT_TASK_TIMEOUT_MS, INITIAL_FIELDS, isEnd, type LiveState, type Task } from '../task.ts'
import { DEFAULT_MAX_ATTEMPTS, deliveryHandlers } from './attempts.ts'
import { decisionHandlers, notifyChildren, notifyRelatives, relativeHandlers } from './decisions.ts'
import {
  EVENT_SENDERS,
  ON_DUE,
  pendingEffects,
  type TaskEffect,
  type TaskEvent,
  type TaskEventType,
  type TaskStoreEffect,
} from './events-and-effects.ts'
import { answerHandlers, questionHandlers } from './questions.ts'
import { type RefusedEvent, refuse, type TaskRefusal } from './refusal.ts'
import { reportHandlers, validationHandlers } from './reports-and-reminders.ts'
import type { TaskSnapshot } from './snapshot.ts'
import { accept, type HandlerResult, type TaskEventHandlers, workerOf } from './task-changes.ts'
import { isLegal } from './transitions.ts'

export type ReducedTask = Reduced<Task, TaskEffect, TaskRefusal>

const HANDLERS: TaskEventHandlers<Exclude<TaskEventType, 'held' | 'released'>> = {
  ...deliveryHandlers,
  ...questionHandlers,
  ...answerHandlers,
  ...reportHandlers,
  ...validationHandlers,
  ...decisionHandlers,
  ...relativeHandlers,
}

const TIMER_EVENTS: ReadonlySet<TaskEventType> = new Set(Object.values(ON_DUE).map(({ type }) => type))

/**
 * Returns the task after an event, with the effects to carry out. Refuses late, duplicate and unauthorized events with
 * a message for the sender. Pure; `state` is the same object as before if the event changes nothing.
 */
export function reduce(snapshot: TaskSnapshot, event: TaskEvent): ReducedTask {
  const before = snapshot.task
  if (isEnd(before.state)) return reduceEnded(snapshot, event)
  const refused = refuseSender(before, event)
  if (refused !== undefined) return refused
  const result = handleUnderHold(snapshot, event)
  return result.ok ? conclude(snapshot, result.state, result.effects) : result
}

/** End states are final. An ended task still takes the receipt of its interrupt, and passes a cancellation on to descendants. */
function reduceEnded(snapshot: TaskSnapshot, event: TaskEvent): ReducedTask {
  const { task } = snapshot
  if (event.type === 'interrupted') {
    const result = deliveryHandlers.interrupted(snapshot, event)
    return result.ok ? conclude(snapshot, result.state, result.effects) : result
  }
  if (event.type === 'parent_ended' && event.as === 'cancelled') {
    return conclude(
      snapshot,
      task,
      notifyChildren(snapshot, { ...task, state: 'cancelled', reason: event.reason }),
    )
  }
  return refuse('TASK_ENDED', `${task.id} has ended: ${task.state}, ${task.reason}`)
}

/** A held task still handles events, so no command is lost during the hold; only its timers stop. */
function handleUnderHold(snapshot: TaskSnapshot, event: TaskEvent): HandlerResult {
  const { task, now } = snapshot
  const { held } = task
  if (event.type === 'held') {
    if (held !== null) return refuse('DUPLICATE', `${task.id} is already held: ${held.reason}`)
    return accept(hold(task, { by: event.by, reason: event.reason, at: now }))
  }
  if (event.type === 'released') {
    if (held === null) return refuse('STALE', `${task.id} is not held`)
    return accept(shiftTimers({ ...task, state: held.state, held: null }, now - held.at))
  }
  if (held === null) return handle(snapshot, event)
  if (TIMER_EVENTS.has(event.type)) return refuse('STALE', `${task.id} is held; its timers are stopped`)
  const result = handle({ ...snapshot, task: { ...task, state: held.state, held: null } }, event)
  if (!result.ok || isEnd(result.state.state)) return result
  return { ...result, state: hold(result.state, held) }
}

function hold(task: Task, { by, reason, at }: { by: string; reason: string; at: number }): Task {
  return { ...task, state: 'blocked', held: { by, reason, at, state: task.state as LiveState } }
}

/** Moves every timer of the task by `ms`. */
export function shiftTimers(task: Task, ms: number): Task {
  return {
    ...task,
    due: task.due === null ? null : shiftDue(task.due, ms),
    questions: task.questions.map((question) =>
      question.expiresAt === null ? question : { ...question, expiresAt: question.expiresAt + ms },
    ),
  }
}

function shiftDue(due: NonNullable<Task['due']>, ms: number): Task['due'] {
  const { since } = due
  return { ...due, at: due.at + ms, ...(since === undefined ? {} : { since: since + ms }) }
}

function handle<E extends Exclude<TaskEvent, { type: 'held' | 'released' }>>(
  snapshot: TaskSnapshot,
  event: E,
): HandlerResult {
  // TypeScript can't infer that the entry for the event's type takes this very event.
  const handler = HANDLERS[event.type] as (snapshot: TaskSnapshot, event: E) => HandlerResult
  return handler(snapshot, event)
}

function refuseSender(task: Task, event: TaskEvent): RefusedEvent | undefined {
  if (!('by' in event)) return undefined
  const { by } = event
  const sender = EVENT_SENDERS[event.type]
  // A person may send all but the worker's events.
  if (by === OPERATOR && sender !== 'worker') return undefined
  switch (sender) {
    case 'worker':
      if (by === workerOf(task)) return undefined
      return refuse('NOT_YOURS', `${task.id} is the task of ${workerOf(task)}`)
    case 'delegator':
      if (by === task.delegator) return undefined
      return refuse('NOT_YOURS', `${task.id} was delegated by ${task.delegator}`)
    case 'person':
      return refuse('NOT_A_PERSON', `Only a person can do that to ${task.id}`)
    case 'judge':
      return by === judgeOf(task) ? undefined : refuse('NOT_YOURS', `You are not the judge of ${task.id}`)
    case 'handler':
      return undefined
  }
}

/** The service speaks for a model. */
function judgeOf({ judge }: Task): string | undefined {
  return judge?.kind === 'model' ? ORCHESTRATOR : judge?.name
}

/** Derives the version and outside effects from the task before and after, so no handler can forget one. */
function conclude(snapshot: TaskSnapshot, after: Task, effects: readonly TaskStoreEffect[]): ReducedTask {
  const before = snapshot.task
  if (!isLegal(before, after))
    throw new Error(`${before.id} cannot go from ${before.state} to ${after.state}`)
  const all = [...effects, ...notifyRelatives(snapshot, after)]
  if (all.length === 0 && !isChanged(before, after)) return { ok: true, state: before, effects: [] }
  const state = { ...after, version: before.version + 1 }
  const known = pendingEffects(before)
  const outside = pendingEffects(state).filter(({ key }) => !known.some((one) => one.key === key))
  return { ok: true, state, effects: [...all, ...outside] }
}

function isChanged(before: Task, after: Task): boolean {
  return (Object.keys(after) as (keyof Task)[]).some((key) => before[key] !== after[key])
}

type RequiredInDraft = Pick<Task, 'id' | 'delegator' | 'agent' | 'text' | 'createdAt'>
type OptionalInDraft = Pick<
  Task,
  'context' | 'requiresResponse' | 'checks' | 'judge' | 'resultSchema' | 'timeoutMs' | 'maxAttempts' | 'hop'
>

export type TaskDraft = RequiredInDraft & {
  [Field in keyof OptionalInDraft]?: OptionalInDraft[Field] | undefined
} & {
  parent?: Pick<Task, 'id' | 'root' | 'depth' | 'hop'> | undefined
}

/** A task before its first event. `reduce` with `delegated` decides whether it may start. */
export function newTask(draft: TaskDraft): Task {
  const { parent, timeoutMs = DEFAULT_TASK_TIMEOUT_MS } = draft
  return {
    ...INITIAL_FIELDS,
    id: draft.id,
    parent: parent?.id ?? null,
    root: parent?.root ?? draft.id,
    delegator: draft.delegator,
    agent: draft.agent,
    text: draft.text,
    context: draft.context ?? {},
    requiresResponse: draft.requiresResponse ?? true,
    depth: (parent?.depth ?? 0) + 1,
    hop: parent?.hop ?? draft.hop ?? 0,
    checks: draft.checks ?? [],
    judge: draft.judge ?? null,
    resultSchema: draft.resultSchema ?? null,
    timeoutMs,
    maxAttempts: draft.maxAttempts ?? DEFAULT_MAX_ATTEMPTS,
    createdAt: draft.createdAt,
    state: 'pending',
    attempt: 1,
    version: 0,
    remainingMs: timeoutMs,
  }
}
