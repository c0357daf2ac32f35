/** What a task learns of its relatives. */
import { ORCHESTRATOR } from '../../../base/agent.ts'
import { isEnd, type Task } from '../../task.ts'
import type { StoreEffect } from '../effect.ts'
import { allEnded } from '../tree.ts'
import type { View } from '../view.ts'
import { wakeText } from '../wording.ts'
import { underValidation } from './asking.ts'
import { end } from './ending.ts'
import { done, type Handlers, parentIsOpen, refuse, workerOf } from './outcome.ts'
import { begun, settle } from './resting.ts'
import { withMail } from './worker.ts'

export const family: Pick<Handlers, 'child_delegated' | 'child_changed' | 'parent_ended'> = {
  child_delegated(view, { child, requiresResponse }, settings) {
    const { task } = view
    if (task.seen.includes(child)) return refuse('DUPLICATE', `${child} was delegated already`)
    if (task.claim !== null) return underValidation(task)
    if (task.delegations >= settings.maxDelegations) {
      return refuse('TOO_MANY', `${task.id} has delegated ${task.delegations} times. Report what there is.`)
    }
    const delegated: Task = {
      ...begun(view, task),
      seen: [...task.seen, child],
      delegations: task.delegations + 1,
      awaiting: requiresResponse ? [...task.awaiting, child] : task.awaiting,
    }
    return done(settle(view, delegated, settings))
  },

  /** A parent is woken once when all it waits for have ended, in whatever way, and whatever it does meanwhile. */
  child_changed(view, _, settings) {
    const { task, children } = view
    const { awaiting } = task
    if (awaiting.length === 0 || !allEnded(awaiting, children)) return done(settle(view, task, settings))
    const ended = children.filter(({ id }) => awaiting.includes(id))
    const woken = withMail({ ...task, awaiting: [] }, false)
    const text = wakeText(task, ended)
    return done(settle(view, woken, settings), {
      type: 'wake_parent',
      to: workerOf(task),
      task: task.id,
      children: awaiting,
      text,
    })
  },

  /** Cancellation reaches every descendant; otherwise one that nobody waits for may finish. */
  parent_ended(view, { as, reason }) {
    const { task } = view
    if (as !== 'cancelled' && !task.requiresResponse) return done(task)
    const why =
      as === 'cancelled'
        ? `${task.parent} was cancelled: ${reason}`
        : `${task.parent} ended (${as}) without waiting for it`
    return end(view, task, { state: 'cancelled', reason: why, by: ORCHESTRATOR })
  },
}

/** Whom a step concerns besides the task: its children when it ends, its parent when it ends or begins or ceases to wait for it. */
export function tellRelatives(view: View, after: Task): StoreEffect[] {
  const before = view.task
  const hasEnded = isEnd(after.state) && !isEnd(before.state)
  const turnsToParent = (after.state === 'waiting_parent') !== (before.state === 'waiting_parent')
  return [
    ...(hasEnded ? tellChildren(view, after) : []),
    ...(hasEnded || turnsToParent ? tellParent(view) : []),
  ]
}

function tellParent(view: View): StoreEffect[] {
  if (view.parent === null || !parentIsOpen(view)) return []
  const event = { type: 'child_changed', child: view.task.id } as const
  return [{ type: 'tell', task: view.parent.id, event }]
}

/**
 * Root first (see cancellationOrder): the task has ended before its children hear of it. A cancellation also passes
 * through those that have ended, to what outlived them.
 */
export function tellChildren({ children }: View, { state, reason }: Task): StoreEffect[] {
  if (!isEnd(state)) return []
  const event = { type: 'parent_ended', as: state, reason: reason ?? '' } as const
  return children
    .filter((child) => !isEnd(child.state) || (state === 'cancelled' && child.delegations > 0))
    .map(({ id }) => ({ type: 'tell', task: id, event }))
}
