/** Building blocks of the handlers: changed tasks with their effects, and ends. */
import { OPERATOR, ORCHESTRATOR } from '../../base/agent.ts'
import type { Reduced } from '../../base/result.ts'
import {
  type EndState,
  isEnd,
  type LiveState,
  type Task,
  type TaskQuestion,
  type TaskState,
} from '../task.ts'
import type { SendKind, TaskEventOf, TaskEventType, TaskStoreEffect } from './events-and-effects.ts'
import { outcomeText } from './message-texts.ts'
import type { TaskRefusal } from './refusal.ts'
import { type Child, isAwaited, type TaskSnapshot } from './snapshot.ts'
import { canMove } from './transitions.ts'

/** A handler returns store effects only. `reduce` derives timers and outside effects from the new task. */
export type HandlerResult = Reduced<Task, TaskStoreEffect, TaskRefusal>
export type Accepted = Extract<HandlerResult, { ok: true }>
export type TaskEventHandlers<T extends TaskEventType = TaskEventType> = {
  [K in T]: (snapshot: TaskSnapshot, event: TaskEventOf<K>) => HandlerResult
}

export function accept(state: Task, ...effects: TaskStoreEffect[]): Accepted {
  return { ok: true, state, effects }
}

/** Puts more effects before those of the result. */
export function prepend(result: Accepted, ...effects: TaskStoreEffect[]): Accepted {
  return { ...result, effects: [...effects, ...result.effects] }
}

/** Throws for a transition that isn't in the table: that is a bug, not a mistake of the sender. */
export function moveTo(task: Task, state: TaskState): Task {
  if (task.state === state) return task
  if (!canMove(task.state, state)) throw new Error(`${task.id} cannot go from ${task.state} to ${state}`)
  return { ...task, state }
}

/** The operator, once a person took the task over. */
export function workerOf(task: Pick<Task, 'agent' | 'takenOver'>): string {
  return task.takenOver ? OPERATOR : task.agent
}

export function isParentOpen({ parent }: TaskSnapshot): boolean {
  return parent !== null && !isEnd(parent.state)
}

/** The message is unread until the runtime takes it, and starts a stopped agent. */
export function sendToWorker(
  task: Task,
  kind: SendKind,
  text: string,
  inReplyTo?: string,
): { task: Task; effect: TaskStoreEffect } {
  const reply = inReplyTo === undefined ? {} : { inReplyTo }
  const to = workerOf(task)
  const effect = { type: 'send', kind, to, text, wake: true, ...reply } as const
  return { task: withUnread(task, kind === 'reminder'), effect }
}

/** Any message but a reminder resets the count of reminders. */
export function withUnread(task: Task, isReminder: boolean): Task {
  const reminders = isReminder ? task.reminders : 0
  if (workerOf(task) === OPERATOR) return { ...task, reminders }
  return { ...task, reminders, sent: task.sent + 1, unread: true }
}

/** A command of the worker proves that it has started, even when it overtakes the runtime's receipt. */
export function started({ now }: TaskSnapshot, task: Task): Task {
  if (task.state !== 'pending' && task.state !== 'analyzing') return task
  return {
    ...moveTo(task, 'executing'),
    acknowledgedAt: task.acknowledgedAt ?? now,
    unread: false,
    due: { kind: 'deadline', at: now + task.remainingMs },
  }
}

/**
 * Moves a started task to the state that its questions and children call for: executing with its deadline running, or
 * waiting with the deadline stopped.
 */
export function updateState(snapshot: TaskSnapshot, task: Task): Task {
  if (task.state === 'pending' || task.state === 'analyzing') return task
  if (task.claim !== null) return moveTo(stopDeadline(task, snapshot.now), 'executing')
  const state = restingState(task, snapshot.children)
  if (state !== 'executing') return moveTo({ ...stopDeadline(task, snapshot.now), due: null }, state)
  if (task.due?.kind === 'deadline') return moveTo(task, state)
  const at = snapshot.now + Math.max(task.remainingMs, snapshot.settings.graceMs)
  return { ...moveTo(task, state), due: { kind: 'deadline', at } }
}

/** A claim's own timer keeps running; only working time is saved. */
function stopDeadline(task: Task, now: number): Task {
  if (task.due?.kind !== 'deadline') return task
  return { ...task, due: null, remainingMs: Math.max(0, task.due.at - now) }
}

/** If a task waits for several, its state names the wait that only a person can end, then the parent's, then a child's. */
const WAITS_BY_PRIORITY: LiveState[] = ['waiting_approval', 'waiting_user', 'waiting_parent', 'waiting_child']

export function restingState(task: Task, children: readonly Child[]): LiveState {
  const waits = new Set(task.questions.map((question) => waitStateOf(task, question)))
  const known = new Set(children.map(({ id }) => id))
  // A child that was delegated in this transaction may be missing from the snapshot.
  const isNew = task.awaiting.some((id) => !known.has(id))
  if (isNew || children.some(isAwaited)) waits.add('waiting_child')
  return WAITS_BY_PRIORITY.find((state) => waits.has(state)) ?? 'executing'
}

/** Undefined for an extension: the work continues while it is requested. */
function waitStateOf(task: Pick<Task, 'delegator'>, question: TaskQuestion): LiveState | undefined {
  switch (question.kind) {
    case 'approval':
      return 'waiting_approval'
    case 'user':
    case 'takeover':
      return 'waiting_user'
    case 'help':
      return 'waiting_parent'
    case 'query':
      return question.to === task.delegator ? 'waiting_parent' : 'waiting_child'
    case 'extension':
      return undefined
  }
}

interface TaskEnding {
  state: EndState
  reason: string
  /** The worker by its report, the delegator, a person, or the service. */
  by: string
  /** Notifies a person (C7). */
  escalate?: boolean
}

const KIND_OF: Record<EndState, SendKind> = {
  completed: 'report',
  failed: 'failed',
  cancelled: 'cancelled',
  skipped: 'cancelled',
}

/** Every end goes through here: it notifies worker and delegator, withdraws open questions, and ends descendants. */
export function end(
  snapshot: TaskSnapshot,
  task: Task,
  { state, reason, by, escalate = false }: TaskEnding,
): Accepted {
  const isInTurn = task.state === 'executing' && task.claim === null && by !== task.agent && !task.takenOver
  const ended: Task = {
    ...moveTo(task, state),
    endedAt: snapshot.now,
    reason,
    due: null,
    claim: null,
    questions: [],
    awaiting: [],
    unread: false,
    held: null,
    interrupts: task.interrupts + (isInTurn ? 1 : 0),
    interrupting: task.interrupting || isInTurn,
  }
  return accept(
    ended,
    ...withdrawAll(task.questions),
    ...notifyWorker(ended, by),
    // The escalation already reaches a person who delegated.
    ...(escalate && task.delegator === OPERATOR ? [] : notifyDelegator(snapshot, ended, by)),
    ...(escalate ? [escalation(ended)] : []),
  )
}

/** Withdraws open requests to people. A late answer of an agent is refused when it arrives. */
export function withdrawAll(questions: readonly TaskQuestion[]): TaskStoreEffect[] {
  return questions
    .filter(({ to }) => to === OPERATOR)
    .map(({ id: question }) => ({ type: 'withdraw', question }))
}

function notifyWorker(task: Task, by: string): TaskStoreEffect[] {
  if (by === task.agent || task.sent === 0 || task.takenOver) return []
  return [{ type: 'send', kind: 'cancelled', to: task.agent, text: outcomeText(task), wake: false }]
}

/** A failure wakes the delegator. Other results wait until all children of its own task have ended. */
function notifyDelegator(snapshot: TaskSnapshot, task: Task, by: string): TaskStoreEffect[] {
  const hasParentEnded = snapshot.parent !== null && !isParentOpen(snapshot)
  if (by === task.delegator || (hasParentEnded && by === ORCHESTRATOR && task.state === 'cancelled'))
    return []
  const kind = KIND_OF[task.state as EndState]
  const wake = task.state === 'failed' || !isParentOpen(snapshot)
  return [{ type: 'send', kind, to: task.delegator, text: outcomeText(task), wake }]
}

function escalation(task: Task): TaskStoreEffect {
  return {
    type: 'ask_person',
    kind: 'escalation',
    question: `${task.id}/escalation`,
    text: outcomeText(task),
    reason: task.reason!,
    awaits: false,
    expiresAt: null,
  }
}
