/** Building blocks of the event handlers: results, state changes and messages to the worker. */
import { OPERATOR } from '../../../base/agent.ts'
import type { Reduced } from '../../../base/reduce.ts'
import { isEnd, type LiveState, type Task, type TaskQuestion, type TaskState } from '../../task.ts'
import type { SendKind, TaskStoreEffect } from '../effect.ts'
import type { TaskEventOf, TaskEventType } from '../event.ts'
import type { TaskRefusal } from '../refusal.ts'
import { next, TRANSITION_TO } from '../transitions.ts'
import { type Child, isAwaited } from '../tree.ts'
import type { TaskView } from '../view.ts'

/** A handler returns store effects only. `reduce` derives timers and outside effects from the new task. */
export type HandlerResult = Reduced<Task, TaskStoreEffect, TaskRefusal>
export type Accepted = Extract<HandlerResult, { ok: true }>
export type TaskEventHandlers<T extends TaskEventType = TaskEventType> = {
  [K in T]: (view: TaskView, event: TaskEventOf<K>) => HandlerResult
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
  const reached = next(task.state, TRANSITION_TO[state])
  if (reached === undefined) throw new Error(`${task.id} cannot go from ${task.state} to ${state}`)
  return { ...task, state: reached }
}

/** The operator, once a person took the task over. */
export function workerOf(task: Pick<Task, 'agent' | 'takenOver'>): string {
  return task.takenOver ? OPERATOR : task.agent
}

export function isParentOpen({ parent }: TaskView): boolean {
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
  const effect = { type: 'send', kind, to, task: task.id, text, wake: true, ...reply } as const
  return { task: withUnread(task, kind === 'reminder'), effect }
}

/** Any message but a reminder resets the count of reminders. */
export function withUnread(task: Task, isReminder: boolean): Task {
  const reminders = isReminder ? task.reminders : 0
  if (workerOf(task) === OPERATOR) return { ...task, reminders }
  return { ...task, reminders, sent: task.sent + 1, unread: true }
}

/** A command of the worker proves that it has started, even when it overtakes the runtime's receipt. */
export function started({ now }: TaskView, task: Task): Task {
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
export function updateState(view: TaskView, task: Task): Task {
  if (task.state === 'pending' || task.state === 'analyzing') return task
  if (task.claim !== null) return moveTo(stopDeadline(task, view.now), 'executing')
  const state = restingState(task, view.children)
  if (state !== 'executing') return moveTo({ ...stopDeadline(task, view.now), due: null }, state)
  if (task.due?.kind === 'deadline') return moveTo(task, state)
  const at = view.now + Math.max(task.remainingMs, view.settings.graceMs)
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
  // A child that was delegated in this transaction may be missing from the view.
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
