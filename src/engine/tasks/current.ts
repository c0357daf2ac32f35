import { isEnd, type Task } from '../../model/task.ts'
import type { Reader } from '../../store/store.ts'
import { eachOpenTaskOf, findTask } from '../../store/tasks.ts'

/** Enough to name to whoever has to say which one is meant. */
const NAMED = 10

export interface Looked {
  agent: string
  /** The tasks that its turn is about, as far as is known. */
  inTurn: ReadonlySet<string>
  fits?(task: Task): boolean
}

/**
 * The agent's only open task, else the one that its turn is about; several where neither says which. An agent may have
 * thousands: no more of them are read than it takes to know.
 */
export async function currentTask(
  reader: Reader,
  { agent, inTurn, fits = () => true }: Looked,
): Promise<Task | readonly Task[] | undefined> {
  const current: Task[] = []
  for (const id of [...inTurn].reverse()) {
    const task = await findTask(reader, id)
    if (task?.agent === agent && !isEnd(task.state) && fits(task)) current.push(task)
    if (current.length > 1) break
  }
  if (current.length === 1) return current[0]
  const open = await firstOpen(reader, agent, fits, NAMED)
  return open.length <= 1 ? open[0] : open
}

/** The oldest of its open tasks for which that holds. */
export async function firstOpen(
  reader: Reader,
  agent: string,
  fits: (task: Task) => boolean,
  most: number,
): Promise<Task[]> {
  const found: Task[] = []
  for await (const task of eachOpenTaskOf(reader, agent)) {
    if (fits(task)) found.push(task)
    if (found.length === most) break
  }
  return found
}
