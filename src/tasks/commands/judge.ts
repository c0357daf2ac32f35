import { AppError } from '../../base/errors.ts'
import type { Handler } from '../../commands/commands.ts'
import type { FieldsOf } from '../../protocol/command.ts'
import { findReference, ownTask, unknownReference } from '../references.ts'
import { refusalError } from '../refusal.ts'
import { isEnd } from '../task.ts'
import type { Tasks } from '../tasks.ts'

/** A reviewer's judgement of a claim. It names the claim, because a judgement of an earlier claim doesn't count. */
export const judgeHandler = (tasks: Tasks): Handler<FieldsOf<'judge'>> => ({
  async handle(context, { task_id, claim, completed, reason }) {
    const { tx, speaker } = context
    const found = await findReference(tx, task_id, ({ task }) => task.judge?.name === speaker.name)
    if (found === undefined) return unknownReference(task_id)
    const { id, agent } = found.task
    const told = await tasks.tell(tx, id, {
      type: 'judged',
      by: speaker.name,
      claim,
      completed,
      reason,
    })
    if (!told.ok) return refusalError(told)
    const own = await ownTask(tasks, context, undefined)
    if (own !== undefined && !(own instanceof AppError)) tasks.spoke(tx, speaker.name, own.id)
    const { state, delegator, questions } = told.task
    const next = questions.some(({ kind }) => kind === 'help') ? `${delegator} decides` : `${agent} goes on`
    return {
      status: 'ok',
      result: isEnd(state) ? `${id} is ${state}` : `${id} is not done; ${next}`,
      details: { task_id: id, claim, state },
    }
  },
})
