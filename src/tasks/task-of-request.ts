import { parseId } from '../base/ids.ts'
import type { Reader } from '../store/store.ts'
import { findTask, firstOpen } from './store/tasks.ts'
import type { Task } from './task.ts'

/** Part of an audit entry's data, by which the entry is found with its tree. */
interface AboutTask {
  task_id?: string
  root?: string
}

export function aboutTask(task: Task | undefined): AboutTask {
  return task === undefined ? {} : { task_id: task.id, root: task.root }
}

/** The task that a request to people belongs to: the one that it names, the one that waits for it, or the asker's only one. */
export async function taskOfRequest(
  reader: Reader,
  request: { id: string; asker: string; context: string },
): Promise<AboutTask> {
  const named = taskIn(request.context)
  if (named !== undefined) return aboutTask(await findTask(reader, named))
  const asking = await taskAsking(reader, request)
  if (asking !== undefined) return aboutTask(asking)
  const saidIn = saidInOf(request.context)
  if (saidIn !== undefined) return saidIn === null ? {} : aboutTask(await findTask(reader, saidIn))
  const [first, ...others] = await firstOpen(reader, request.asker, () => true, 2)
  return aboutTask(others.length === 0 ? first : undefined)
}

/** The open task that waits for a verdict on the request. */
export async function taskAsking(
  reader: Reader,
  { id: request, asker, context }: { id: string; asker: string; context: string },
): Promise<Task | undefined> {
  const asks = ({ questions }: Task) => questions.some(({ id }) => id === request)
  const saidIn = saidInOf(context)
  // No task can wait for a command that was sent in none; this avoids a search through thousands.
  if (saidIn === null) return undefined
  if (saidIn === undefined) return (await firstOpen(reader, asker, asks, 1))[0]
  const task = await findTask(reader, saidIn)
  return task !== undefined && asks(task) ? task : undefined
}

function taskIn(context: string): string | undefined {
  const task = fieldOf(context, 'task')
  return typeof task === 'string' && parseId('task', task) !== undefined ? task : undefined
}

/** Null: sent in no task. Undefined: not stored. */
function saidInOf(context: string): string | null | undefined {
  const task = fieldOf(context, 'saidIn')
  return task === null || (typeof task === 'string' && parseId('task', task) !== undefined) ? task : undefined
}

function fieldOf(context: string, field: string): unknown {
  try {
    return (JSON.parse(context) as Record<string, unknown>)[field]
  } catch {
    // Some requests store plain text there.
    return undefined
  }
}
