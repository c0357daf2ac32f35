import type { Result } from '../base/result.ts'
import type { Tx } from '../store/store.ts'
import type { TaskEvent } from './core/events-and-effects.ts'
import type { TaskRefusal } from './core/refusal.ts'
import type { Task } from './task.ts'

/** The task after an event, or why it refused the event. */
export type TaskChange = Result<Task, TaskRefusal>

/** Reports an event to a task. */
export type TellTask = (tx: Tx, task: string | Task, event: TaskEvent) => Promise<TaskChange>
