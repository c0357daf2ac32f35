import { parseId } from '../../model/identifier.ts'
import type { Task } from '../../model/task.ts'
import type { Reader } from '../../store/store.ts'
import { findTask, openTasksOf } from '../../store/tasks.ts'

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
  const open = await openTasksOf(reader, request.asker)
  const asking = open.find(({ questions }) => questions.some(({ id }) => id === request.id))
  return aboutTask(asking ?? (open.length === 1 ? open[0] : undefined))
}

function taskIn(context: string): string | undefined {
  try {
    const { task } = JSON.parse(context) as { task?: unknown }
    return typeof task === 'string' && parseId('task', task) !== undefined ? task : undefined
  } catch {
    // Some requests have words of their own there.
    return undefined
  }
}
