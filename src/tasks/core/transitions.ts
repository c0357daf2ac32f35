import type { TaskState, TaskTransition } from '../task.ts'

/** Every open state can end in every way, because a person or a timer may end a task at any time. */
const ENDINGS = { complete: 'completed', fail: 'failed', cancel: 'cancelled', skip: 'skipped' } as const

/**
 * The state machine of C6. End states have no transitions. A retry isn't one either: a new attempt starts at `pending`
 * with a higher attempt number (`isLegal`).
 */
export const TRANSITIONS: Record<TaskState, Partial<Record<TaskTransition, TaskState>>> = {
  // `execute`: a command of the worker may overtake the runtime's receipt.
  pending: { start: 'analyzing', execute: 'executing', block: 'blocked', ...ENDINGS },
  analyzing: { execute: 'executing', block: 'blocked', ...ENDINGS },
  executing: {
    await_child: 'waiting_child',
    await_parent: 'waiting_parent',
    await_user: 'waiting_user',
    await_approval: 'waiting_approval',
    block: 'blocked',
    ...ENDINGS,
  },
  waiting_child: {
    execute: 'executing',
    await_parent: 'waiting_parent',
    await_user: 'waiting_user',
    await_approval: 'waiting_approval',
    block: 'blocked',
    ...ENDINGS,
  },
  waiting_parent: {
    execute: 'executing',
    await_child: 'waiting_child',
    await_user: 'waiting_user',
    await_approval: 'waiting_approval',
    block: 'blocked',
    ...ENDINGS,
  },
  waiting_user: {
    execute: 'executing',
    await_child: 'waiting_child',
    await_parent: 'waiting_parent',
    await_approval: 'waiting_approval',
    block: 'blocked',
    ...ENDINGS,
  },
  waiting_approval: {
    execute: 'executing',
    await_child: 'waiting_child',
    await_parent: 'waiting_parent',
    await_user: 'waiting_user',
    block: 'blocked',
    ...ENDINGS,
  },
  // A release restores the state that the task would have without the hold.
  blocked: {
    queue: 'pending',
    start: 'analyzing',
    execute: 'executing',
    await_child: 'waiting_child',
    await_parent: 'waiting_parent',
    await_user: 'waiting_user',
    await_approval: 'waiting_approval',
    ...ENDINGS,
  },
  completed: {},
  failed: {},
  cancelled: {},
  skipped: {},
}

export function next(state: TaskState, transition: TaskTransition): TaskState | undefined {
  return TRANSITIONS[state][transition]
}

/** Each state is reached by one transition. */
export const TRANSITION_TO: Record<TaskState, TaskTransition> = {
  pending: 'queue',
  analyzing: 'start',
  executing: 'execute',
  waiting_child: 'await_child',
  waiting_parent: 'await_parent',
  waiting_user: 'await_user',
  waiting_approval: 'await_approval',
  blocked: 'block',
  completed: 'complete',
  failed: 'fail',
  cancelled: 'cancel',
  skipped: 'skip',
}

interface StateAndAttempt {
  state: TaskState
  attempt: number
}

/** An event may take two transitions (a report from `pending`): directly, or by way of `executing`. */
export function isLegal(before: StateAndAttempt, after: StateAndAttempt): boolean {
  if (before.state === after.state) return after.attempt >= before.attempt
  if (after.attempt > before.attempt) {
    return Object.keys(TRANSITIONS[before.state]).length > 0 && ['pending', 'blocked'].includes(after.state)
  }
  const transition = TRANSITION_TO[after.state]
  const executing = next(before.state, 'execute')
  const isTwoSteps = executing !== undefined && next(executing, transition) !== undefined
  return isTwoSteps || next(before.state, transition) !== undefined
}
