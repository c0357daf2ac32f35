import type { Task } from '../task.ts'
import type { Breaker } from './breaker.ts'
import type { TaskSettings } from './settings.ts'
import type { Child } from './tree.ts'

/** The reducer's state: a task with all that a decision about it depends on, loaded in the same transaction. */
export interface TaskView {
  now: number
  task: Task
  parent: Pick<Task, 'id' | 'state'> | null
  /** Empty for a task with `delegations` 0. */
  children: readonly Child[]
  /** From the root down to the parent. Loaded for `delegated` only. */
  ancestors: readonly Pick<Task, 'agent' | 'delegator'>[]
  /** The worker's circuit breaker. Loaded for `delegated` and `retry_due` only. */
  breaker: Breaker
  settings: TaskSettings
}
