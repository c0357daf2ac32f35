import { AppError } from '../../base/errors.ts'
import type { Handler } from '../../commands/handler.ts'
import type { FieldsOf } from '../../protocol/command.ts'
import { findReference, ownTask, unknownReference } from '../references.ts'
import { refusalError } from '../refusal.ts'
import { isEnd } from '../task.ts'

/** A reviewer's word on a claim. It names the claim: one on an earlier claim counts for nothing. */
export const judgeHandler: Handler<FieldsOf<'judge'>> = {
  async handle(context, { task_id, claim, completed, reason }) {
    const { tx, speaker, parts } = context
    const found = await findReference(tx, task_id, ({ task }) => task.judge?.name === speaker.name)
    if (found === undefined) return unknownReference(task_id)
    const { id, agent } = found.task
    const told = await parts.tasks.tell(tx, id, {
      type: 'judged',
      by: speaker.name,
      claim,
      completed,
      reason,
    })
    if (!told.ok) return refusalError(told)
    const own = await ownTask(context, undefined)
    if (own !== undefined && !(own instanceof AppError)) parts.tasks.spoke(tx, speaker.name, own.id)
    const { state, delegator, questions } = told.task
    const next = questions.some(({ kind }) => kind === 'help') ? `${delegator} decides` : `${agent} goes on`
    return {
      status: 'ok',
      result: isEnd(state) ? `${id} is ${state}` : `${id} is not done; ${next}`,
      details: { task_id: id, claim, state },
    }
  },
}
