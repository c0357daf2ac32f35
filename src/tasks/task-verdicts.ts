import { OPERATOR, ORCHESTRATOR } from '../base/agent.ts'
import { AppError } from '../base/errors.ts'
import { formatId } from '../base/ids.ts'
import type { HumanRequestRow } from '../people/store/human-requests.ts'
import type { Tx } from '../store/store.ts'
import { taskAsking } from './audit-data.ts'
import type { Progress } from './progress.ts'
import { askedIn, eventOf, type PersonsWord } from './questions.ts'
import { refusalError } from './refusal.ts'
import { findTask } from './store/tasks.ts'

export interface ApprovalAsked {
  by: string
  question: string
  /** What is held. */
  text: string
}

/** What people say to the questions of tasks, and to commands that were held in a task's turn. */
export function createTaskVerdicts(tell: Progress['tell']) {
  return {
    async decided(tx: Tx, row: HumanRequestRow, word: PersonsWord): Promise<string> {
      const { task: id, question } = askedIn(row)
      const kind = (await findTask(tx, id))?.questions.find((one) => one.id === question)?.kind
      if (kind === undefined) {
        throw new AppError('CONFLICT', `${id} does not wait for this any more`, {
          hint: `orc task show ${id}`,
        })
      }
      const event = eventOf(row, kind, word)
      if (event instanceof AppError) throw event
      const told = await tell(tx, id, event)
      if (!told.ok) throw refusalError(told)
      return `${id} goes on`
    },

    async expired(tx: Tx, row: HumanRequestRow) {
      const { task, question } = askedIn(row)
      await tell(tx, task, { type: 'question_expired', question })
    },

    async approvalAsked(tx: Tx, task: string, asked: ApprovalAsked) {
      await tell(tx, task, { type: 'approval_asked', ...asked })
    },

    async approvalDecided(tx: Tx, row: HumanRequestRow, state: string, words: string): Promise<boolean> {
      const question = formatId('req', row.id)
      const task = await taskAsking(tx, { ...row, id: question })
      if (task === undefined) return false
      const isExpired = state === 'expired'
      const by = isExpired ? ORCHESTRATOR : OPERATOR
      const isDone = state === 'approved' || state === 'modified'
      const verdict = isExpired ? 'expired' : isDone ? state : 'rejected'
      const told = await tell(tx, task.id, { type: 'approval_decided', by, question, verdict }, words)
      return told.ok
    },
  }
}
