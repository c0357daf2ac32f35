import { parseId } from '../../model/identifier.ts'
import type { Task } from '../../model/task.ts'
import type { Reader } from '../../store/store.ts'
import { findTask } from '../../store/tasks.ts'
import { firstOpen } from './current.ts'

/** In the data of an audit entry: the entry is found with its tree. */
export interface AboutTask {
  task_id?: string
  root?: string
}

export function aboutTask(task: Task | undefined): AboutTask {
  return task === undefined ? {} : { task_id: task.id, root: task.root }
}

/** The task for which people are asked: the one that the request names or waits in, else the asker's only one. */
export async function taskOfRequest(
  reader: Reader,
  request: { id: string; asker: string; context: string },
): Promise<AboutTask> {
  const named = taskIn(request.context)
  if (named !== undefined) return aboutTask(await findTask(reader, named))
  const asking = await taskAsking(reader, request)
  if (asking !== undefined) return aboutTask(asking)
  const [first, ...others] = await firstOpen(reader, request.asker, () => true, 2)
  return aboutTask(others.length === 0 ? first : undefined)
}

/** The open task that waits for a verdict on this request: mostly the one that it was said in. */
export async function taskAsking(
  reader: Reader,
  { id: request, asker, context }: { id: string; asker: string; context: string },
): Promise<Task | undefined> {
  const asks = ({ questions }: Task) => questions.some(({ id }) => id === request)
  const saidIn = taskIn(context, 'saidIn')
  const likely = saidIn === undefined ? undefined : await findTask(reader, saidIn)
  if (likely !== undefined && asks(likely)) return likely
  return (await firstOpen(reader, asker, asks, 1))[0]
}

function taskIn(context: string, field: 'task' | 'saidIn' = 'task'): string | undefined {
  try {
    const task = (JSON.parse(context) as Record<string, unknown>)[field]
    return typeof task === 'string' && parseId('task', task) !== undefined ? task : undefined
  } catch {
    // Some requests have words of their own there.
    return undefined
  }
}
