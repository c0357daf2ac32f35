import { END_STATES, type TaskState } from '../task.ts'

/**
 * The state machine of a task (C6): the states that each state may move to. End states are final, and every open state
 * can end in every way, because a person or a timer may end a task at any time. A retry isn't a transition: a new attempt
 * starts at `pending` with a higher attempt number (`isLegal`).
 */
const STARTED = ['executing', 'waiting_child', 'waiting_parent', 'waiting_user', 'waiting_approval'] as const
const FROM_STARTED = [...STARTED, 'blocked', ...END_STATES] as const

const NEXT_STATES: Record<TaskState, readonly TaskState[]> = {
  // Directly to `executing` if a command of the worker overtakes the runtime's receipt.
  pending: ['analyzing', 'executing', 'blocked', ...END_STATES],
  analyzing: ['executing', 'blocked', ...END_STATES],
  executing: FROM_STARTED,
  waiting_child: FROM_STARTED,
  waiting_parent: FROM_STARTED,
  waiting_user: FROM_STARTED,
  waiting_approval: FROM_STARTED,
  // A release restores the state that the task would have without the hold.
  blocked: ['pending', 'analyzing', ...STARTED, ...END_STATES],
  completed: [],
  failed: [],
  cancelled: [],
  skipped: [],
}

export function canMove(from: TaskState, to: TaskState): boolean {
  return NEXT_STATES[from].includes(to)
}

interface StateAndAttempt {
  state: TaskState
  attempt: number
}

/** An event may take two transitions (a report from `pending`): directly, or by way of `executing`. */
export function isLegal(before: StateAndAttempt, after: StateAndAttempt): boolean {
  if (before.state === after.state) return after.attempt >= before.attempt
  if (after.attempt > before.attempt) {
    return NEXT_STATES[before.state].length > 0 && ['pending', 'blocked'].includes(after.state)
  }
  const isTwoSteps = canMove(before.state, 'executing') && canMove('executing', after.state)
  return isTwoSteps || canMove(before.state, after.state)
}
