import type { ErrorCode } from '../../base/errors.ts'
import type { Task } from '../task.ts'
import type { Breaker } from './breaker.ts'
import type { Effect } from './effect.ts'
import type { Child } from './tree.ts'

/** What a step looks at. Data, loaded before it in the same transaction. */
export interface View {
  now: number
  task: Task
  parent: Pick<Task, 'id' | 'state'> | null
  /** All of them; none for a task with `delegations` 0. */
  children: readonly Child[]
  /** From the root down to the parent. Only for `delegated`. */
  ancestors: readonly Pick<Task, 'agent' | 'delegator'>[]
  /** The worker's. Only for `delegated` and `retry_due`. */
  breaker: Breaker
}

/** Why something said about a task is not accepted; each transport has an answer to the code on the right. */
export const REFUSALS = {
  TASK_ENDED: 'CONFLICT',
  NOT_YOURS: 'FORBIDDEN',
  NOT_A_PERSON: 'FORBIDDEN',
  NOT_RELATED: 'FORBIDDEN',
  DUPLICATE: 'CONFLICT',
  STALE: 'CONFLICT',
  UNDER_VALIDATION: 'CONFLICT',
  UNKNOWN_QUESTION: 'NOT_FOUND',
  QUESTION_CLOSED: 'CONFLICT',
  BLANK_ANSWER: 'INVALID_COMMAND',
  OUT_OF_RANGE: 'INVALID_COMMAND',
  TOO_DEEP: 'FORBIDDEN',
  CYCLE: 'FORBIDDEN',
  CIRCUIT_OPEN: 'CONFLICT',
  TOO_MANY: 'RATE_LIMITED',
} as const satisfies Record<string, ErrorCode>

export type RefusalCode = keyof typeof REFUSALS

export interface Refusal {
  ok: false
  code: RefusalCode
  /** For the sender. */
  message: string
}

export interface Accepted {
  ok: true
  /** The task after the step; the same as before where nothing changed. */
  task: Task
  effects: Effect[]
}

export type Stepped = Accepted | Refusal
