import type { Task } from '../../model/task.ts'
import type { Tx } from '../../store/store.ts'
import { insertTask, updateTask } from '../../store/tasks.ts'
import { createRecent } from './recent.ts'

/** So many of the tasks that changed last, and up to as many more. */
const RECENT = 500
/** Of their documents: a few large ones are read again rather than kept. */
const LONGEST = 4000

/**
 * Tasks as they were stored last: the next word on one mostly comes soon, and need not wait for it to be read and taken
 * apart again. Only where no other daemon can have changed it since.
 */
export function createKnownTasks() {
  const recent = createRecent<string, Task>(RECENT)
  /** Agents that have no open task. */
  const free = new Set<string>()

  /** From the moment of the change on, those in the same transaction read what they find; afterwards it is known again. */
  function note(tx: Tx, task: Task, length: number) {
    if (length > LONGEST) return forget(tx, task.id)
    if (tx.lockRow !== '') return
    recent.delete(task.id)
    tx.afterCommit(() => recent.set(task.id, task))
  }

  /** And again behind what was noted of it in the same transaction. */
  function forget(tx: Tx, id: string) {
    if (tx.lockRow !== '') return
    recent.delete(id)
    tx.afterCommit(() => recent.delete(id))
  }

  return {
    /** Every change of a task goes through these three. */
    insert(tx: Tx, task: Task) {
      note(tx, task, insertTask(tx, task))
      // At once for those in the same transaction, and again behind what they have noted for after it.
      free.delete(task.agent)
      tx.afterCommit(() => free.delete(task.agent))
    },
    update: (tx: Tx, before: Task, task: Task) => note(tx, task, updateTask(tx, before, task)),
    /** With all others, at the end of a halt: it is not known of them that they will be asked for. */
    shift(tx: Tx, before: Task, task: Task) {
      updateTask(tx, before, task)
      forget(tx, task.id)
    },
    find: (tx: Tx, id: string): Task | undefined => (tx.lockRow === '' ? recent.get(id) : undefined),
    isFree: (tx: Tx, agent: string): boolean => tx.lockRow === '' && free.has(agent),
    /** In this transaction, a look found that it has no open task. */
    foundFree(tx: Tx, agent: string) {
      tx.afterCommit(() => free.add(agent))
    },
  }
}

export type KnownTasks = ReturnType<typeof createKnownTasks>
