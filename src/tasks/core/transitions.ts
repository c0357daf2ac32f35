import type { TaskEvent, TaskState } from '../task.ts'

/** Every state can end in every way; a person or the clock may come at any time. */
const ENDINGS = { complete: 'completed', fail: 'failed', cancel: 'cancelled', skip: 'skipped' } as const

/**
 * The state machine of C6. Ends have no way out. A retry is not in it: it is a new attempt, which begins at `pending`
 * with a higher attempt number (`isLegal`).
 */
export const NEXT: Record<TaskState, Partial<Record<TaskEvent, TaskState>>> = {
  // The worker's own words may overtake the runtime's receipt: hence `execute`.
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
  // Released, it stands where it would be without the hold.
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

export function next(state: TaskState, event: TaskEvent): TaskState | undefined {
  return NEXT[state][event]
}

/** The edge that leads to a state; each state is reached by one kind of edge. */
export const EVENT_TO: Record<TaskState, TaskEvent> = {
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

interface Standing {
  state: TaskState
  attempt: number
}

/** Several edges may be taken in one step (a report from `pending`); the end of the way must be reachable at once or over `executing`. */
export function isLegal(before: Standing, after: Standing): boolean {
  if (before.state === after.state) return after.attempt >= before.attempt
  if (after.attempt > before.attempt) {
    return Object.keys(NEXT[before.state]).length > 0 && ['pending', 'blocked'].includes(after.state)
  }
  const event = EVENT_TO[after.state]
  const over = next(before.state, 'execute')
  return next(before.state, event) !== undefined || (over !== undefined && next(over, event) !== undefined)
}

export const SEED_STATES = [
  'idle',
  'analyzing',
  'executing',
  'waiting_for_child',
  'waiting_for_parent',
  'waiting_for_user',
  'completed',
  'error',
] as const
/** The words of S2.8. */
export type SeedState = (typeof SEED_STATES)[number]

/** The seed has fewer words: what it can't say becomes the nearest that promises no more. */
export const SEED_OF: Record<TaskState, SeedState> = {
  pending: 'idle',
  analyzing: 'analyzing',
  executing: 'executing',
  waiting_child: 'waiting_for_child',
  waiting_parent: 'waiting_for_parent',
  waiting_user: 'waiting_for_user',
  waiting_approval: 'waiting_for_user',
  blocked: 'idle',
  completed: 'completed',
  failed: 'error',
  cancelled: 'error',
  skipped: 'error',
}

export const STATE_OF_SEED: Record<SeedState, TaskState> = {
  idle: 'pending',
  analyzing: 'analyzing',
  executing: 'executing',
  waiting_for_child: 'waiting_child',
  waiting_for_parent: 'waiting_parent',
  waiting_for_user: 'waiting_user',
  completed: 'completed',
  error: 'failed',
}
