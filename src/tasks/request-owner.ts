import { AppError } from '../base/errors.ts'
import { formatId } from '../base/ids.ts'
import type { HeldInTasks } from '../people/hold-command.ts'
import type { RequestOwner } from '../people/verdicts.ts'
import { ownTask } from './references.ts'
import { taskOfRequest } from './task-of-request.ts'
import type { Tasks } from './tasks.ts'

/** Continues tasks whose questions people have answered. */
export function taskRequestOwner(tasks: () => Tasks): RequestOwner {
  return {
    about: async (tx, row) => ({ ...(await taskOfRequest(tx, { ...row, id: formatId('req', row.id) })) }),
    decided: (tx, row, word) => tasks().decided(tx, row, word),
    expired: (tx, row) => tasks().expired(tx, row),
  }
}

/** Lets a task wait for the verdict on a command that its worker sent. */
export function heldInTasks(tasks: () => Tasks): HeldInTasks {
  return {
    async taskOf(context) {
      const task = await ownTask(tasks(), context, undefined)
      return task === undefined || task instanceof AppError ? null : task.id
    },
    onHeld: (tx, task, held) => tasks().approvalAsked(tx, task, held),
    onDecided: (tx, row, state, words) => tasks().approvalDecided(tx, row, state, words),
    about: async (tx, request) => ({ ...(await taskOfRequest(tx, request)) }),
  }
}
