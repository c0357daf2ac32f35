import type { LiveState, Question, Task } from '../../task.ts'
import type { TaskSettings } from '../settings.ts'
import { type Child, isInMotion } from '../tree.ts'
import type { View } from '../view.ts'
import { moved } from './outcome.ts'

/** Who is waited for while a question is open; an extension is asked for while the work goes on. */
export function waitFor(task: Pick<Task, 'delegator'>, question: Question): LiveState | undefined {
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

/** Of several waits the state names the one that only a person can end, then the parent's, then a child's. */
const BY_WEIGHT: LiveState[] = ['waiting_approval', 'waiting_user', 'waiting_parent', 'waiting_child']

export function restingState(task: Task, children: readonly Child[]): LiveState {
  const waits = new Set(task.questions.map((question) => waitFor(task, question)))
  const known = new Set(children.map(({ id }) => id))
  // A child that was delegated a moment ago may not be among those loaded.
  const isNew = task.awaiting.some((id) => !known.has(id))
  if (isNew || children.some(isInMotion)) waits.add('waiting_child')
  return BY_WEIGHT.find((state) => waits.has(state)) ?? 'executing'
}

/** The worker's own words show that it is at work, even when they overtake the receipt. */
export function begun(view: View, task: Task): Task {
  if (task.state !== 'pending' && task.state !== 'analyzing') return task
  return {
    ...moved(task, 'executing'),
    acknowledgedAt: task.acknowledgedAt ?? view.now,
    unread: false,
    due: { kind: 'deadline', at: view.now + task.remainingMs },
  }
}

/**
 * Puts a task where it belongs once an event has done its part: at work with its clock running, or waiting with the
 * clock stopped. A task the worker has not begun on stays where it is.
 */
export function settle(view: View, task: Task, settings: TaskSettings): Task {
  if (task.state === 'pending' || task.state === 'analyzing') return task
  if (task.claim !== null) return moved(stopped(task, view.now), 'executing')
  const state = restingState(task, view.children)
  if (state !== 'executing') return moved({ ...stopped(task, view.now), due: null }, state)
  if (task.due?.kind === 'deadline') return moved(task, state)
  const at = view.now + Math.max(task.remainingMs, settings.graceMs)
  return { ...moved(task, state), due: { kind: 'deadline', at } }
}

/** A claim's own clock stays; only working time is put by. */
function stopped(task: Task, now: number): Task {
  if (task.due?.kind !== 'deadline') return task
  return { ...task, due: null, remainingMs: Math.max(0, task.due.at - now) }
}
