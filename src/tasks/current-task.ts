import type { Reader } from '../store/store.ts'
import { findTask, firstOpen } from './store/tasks.ts'
import { isEnd, type Task, type TaskState } from './task.ts'

/** Enough to name to whoever has to say which one is meant. */
const NAMED = 10
/** States of a task that its worker has not before it yet. */
const NOT_BEGUN: readonly TaskState[] = ['pending', 'analyzing']

export interface Turn {
  /** That it is about, as far as is known. */
  tasks: ReadonlySet<string>
  /** It was the last one. What is said now may be a late word of it, or not. */
  isOver: boolean
}

export interface Looked {
  agent: string
  turn: Turn
  fits?: ((task: Task) => boolean) | undefined
}

/**
 * The one that the agent's turn is about, else its only open task; several where neither says which. What is said in a
 * turn on one task is never about another that waits in the queue: such are returned to be named, be it a single one.
 * An agent may have thousands: no more of them are read than it takes to know.
 */
export async function currentTask(
  reader: Reader,
  { agent, turn, fits = () => true }: Looked,
): Promise<Task | readonly Task[] | undefined> {
  const current: Task[] = []
  let hasOwn = false
  for (const id of [...turn.tasks].reverse()) {
    const task = await findTask(reader, id)
    if (task?.agent !== agent) continue
    hasOwn = true
    if (!isEnd(task.state) && fits(task)) current.push(task)
    if (current.length > 1) break
  }
  if (current.length === 1 && !turn.isOver) return current[0]
  const open = await firstOpen(reader, agent, fits, NAMED)
  if (open.length === 0) return undefined
  if (turn.tasks.size === 0) return open.length === 1 ? open[0] : open
  const begun = await firstOpen(reader, agent, (task) => isBegun(task) && fits(task), NAMED, NOT_BEGUN)
  if (begun.length > 0) return begun.length === 1 ? begun[0] : begun
  return hasOwn ? open : undefined
}

/** A held one is where it would be without the hold. */
function isBegun({ state, held }: Task): boolean {
  return !NOT_BEGUN.includes(held?.state ?? state)
}
