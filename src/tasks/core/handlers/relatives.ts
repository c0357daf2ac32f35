/** Events between a task, its parent and its children. */
import { ORCHESTRATOR } from '../../../base/agent.ts'
import { isEnd, type Task } from '../../task.ts'
import type { TaskStoreEffect } from '../effect.ts'
import { refuse } from '../refusal.ts'
import { allEnded } from '../tree.ts'
import type { TaskView } from '../view.ts'
import { wakeText } from '../wording.ts'
import { end } from './ending.ts'
import { underValidation } from './questions.ts'
import {
  accept,
  isParentOpen,
  started,
  type TaskEventHandlers,
  updateState,
  withUnread,
  workerOf,
} from './task-changes.ts'

export const relativeHandlers: Pick<TaskEventHandlers, 'child_delegated' | 'child_changed' | 'parent_ended'> =
  {
    child_delegated(view, { child, requiresResponse }) {
      const { task } = view
      if (task.seen.includes(child)) return refuse('DUPLICATE', `${child} was already delegated`)
      if (task.claim !== null) return underValidation(task)
      if (task.delegations >= view.settings.maxDelegations) {
        const message = `${task.id} has delegated ${task.delegations} times. Report what you have.`
        return refuse('TOO_MANY', message)
      }
      const delegated: Task = {
        ...started(view, task),
        seen: [...task.seen, child],
        delegations: task.delegations + 1,
        awaiting: requiresResponse ? [...task.awaiting, child] : task.awaiting,
      }
      return accept(updateState(view, delegated))
    },

    /** Wakes the parent once, when all awaited children have ended in any way, whatever its own state. */
    child_changed(view) {
      const { task, children } = view
      const { awaiting } = task
      if (awaiting.length === 0 || !allEnded(awaiting, children)) return accept(updateState(view, task))
      const ended = children.filter(({ id }) => awaiting.includes(id))
      const woken = withUnread({ ...task, awaiting: [] }, false)
      const text = wakeText(task, ended)
      return accept(updateState(view, woken), {
        type: 'wake_parent',
        to: workerOf(task),
        task: task.id,
        children: awaiting,
        text,
      })
    },

    /** A cancellation reaches every descendant. After another end, a child without requires_response may finish. */
    parent_ended(view, { as, reason }) {
      const { task } = view
      if (as !== 'cancelled' && !task.requiresResponse) return accept(task)
      const why =
        as === 'cancelled'
          ? `${task.parent} was cancelled: ${reason}`
          : `${task.parent} ended (${as}) without waiting for it`
      return end(view, task, { state: 'cancelled', reason: why, by: ORCHESTRATOR })
    },
  }

/** Children learn that the task ended. The parent also learns when the task starts or stops waiting for it. */
export function notifyRelatives(view: TaskView, after: Task): TaskStoreEffect[] {
  const before = view.task
  const hasEnded = isEnd(after.state) && !isEnd(before.state)
  const changesWait = (after.state === 'waiting_parent') !== (before.state === 'waiting_parent')
  return [
    ...(hasEnded ? notifyChildren(view, after) : []),
    ...(hasEnded || changesWait ? notifyParent(view) : []),
  ]
}

function notifyParent(view: TaskView): TaskStoreEffect[] {
  if (view.parent === null || !isParentOpen(view)) return []
  const event = { type: 'child_changed', child: view.task.id } as const
  return [{ type: 'dispatch', task: view.parent.id, event }]
}

/** A cancellation also passes through ended children, to descendants that outlived them. */
export function notifyChildren({ children }: TaskView, { state, reason }: Task): TaskStoreEffect[] {
  if (!isEnd(state)) return []
  const event = { type: 'parent_ended', as: state, reason: reason ?? '' } as const
  return children
    .filter((child) => !isEnd(child.state) || (state === 'cancelled' && child.delegations > 0))
    .map(({ id }) => ({ type: 'dispatch', task: id, event }))
}
