import { AppError } from '../base/errors.ts'
import { formatId } from '../base/ids.ts'
import type { Handler } from '../commands/commands.ts'
import { tooLong } from '../commands/team.ts'
import type { FieldsOf } from '../protocol/command.ts'
import { refusalError } from './core/refusal.ts'
import { findReference, noTask, ownTask, remember, unknownReference } from './references.ts'
import { isEnd, type Task } from './task.ts'
import type { Tasks } from './tasks.ts'
import { problemWith } from './validation/result-schema.ts'

/** A report is a claim until it is validated (S2.3, C22). */
export const reportHandler = (tasks: Tasks): Handler<FieldsOf<'report'>> => ({
  async handle(context, fields) {
    const { team, tx, speaker, saidIn } = context
    const large = tooLong(team, 'result', fields.result)
    if (large !== undefined) return large
    const to = fields.to === undefined ? undefined : (team.resolve(fields.to) ?? fields.to.toLowerCase())
    const own = await ownTask(
      tasks,
      context,
      fields.in_response_to,
      ({ delegator }) => to === undefined || delegator === to,
    )
    if (!own.ok) return own.error
    const task = own.value
    if (task === undefined) return noTask(speaker.name)
    const ended = fields.in_response_to === undefined ? tasks.wasCutShort(speaker.name) : undefined
    if (ended !== undefined && saidIn === undefined) return unclear(ended, task)
    const report = formatId('msg', await tx.nextKey('msg'))
    const { status } = fields
    const { result, problem = misfit(task, fields.result) } = await tasks.filterReport(
      tx,
      task,
      fields.result,
    )
    const change = await tasks.tell(tx, task, {
      type: 'reported',
      by: speaker.name,
      report,
      status,
      result,
      ...(problem === undefined || status !== 'completed' ? {} : { problem }),
    })
    if (!change.ok) return refusalError(change.error)
    remember(context, fields.message_id, task.id)
    tasks.spoke(tx, speaker.name, task.id)
    const { state } = change.value
    const missing = status === 'completed' ? missingIn(change.value) : undefined
    if (missing !== undefined) {
      const next =
        change.value.rejections > task.rejections ? 'Correct it and report again' : 'Its delegator decides'
      const reason = `${task.id} is not done: ${missing}. ${next}`
      return { status: 'ok', result: reason, details: { task_id: task.id, state, accepted: false, missing } }
    }
    const outcome =
      change.value.claim === null ? (isEnd(state) ? state : `reported, ${state}`) : 'under validation'
    return { status: 'ok', result: `${task.id} is ${outcome}`, details: { task_id: task.id, state } }
  },
})

/** A late report on one task must not end another. */
function unclear(ended: string, { id }: Task): AppError {
  return new AppError(
    'CONFLICT',
    `${ended} ended while you worked on it: is this report about it, or about ${id}?`,
    {
      hint: `If it is about ${id}, report again with in_response_to ${id}.`,
    },
  )
}

function misfit({ resultSchema, takenOver }: Task, result: string): string | undefined {
  // The core reports an empty result without a schema.
  if (resultSchema === null || takenOver || result.trim() === '') return undefined
  return problemWith(resultSchema, result)
}

/** How the report breaks its schema, so the receipt can say it before the follow-up message does. */
function missingIn({ claims, evidence }: Task): string | undefined {
  const last = evidence.at(-1)
  const isRejected = last?.claim === claims && last.step === 'schema' && last.outcome === 'failed'
  return isRejected ? last.text : undefined
}

/** A reviewer's judgement of a claim. It names the claim, because a judgement of an earlier claim doesn't count. */
export const judgeHandler = (tasks: Tasks): Handler<FieldsOf<'judge'>> => ({
  async handle(context, { task_id, claim, completed, reason }) {
    const { tx, speaker } = context
    const found = await findReference(tx, task_id, ({ task }) => task.judge?.name === speaker.name)
    if (found === undefined) return unknownReference(task_id)
    const { id, agent } = found.task
    const change = await tasks.tell(tx, id, {
      type: 'judged',
      by: speaker.name,
      claim,
      completed,
      reason,
    })
    if (!change.ok) return refusalError(change.error)
    const own = await ownTask(tasks, context, undefined)
    if (own.ok && own.value !== undefined) tasks.spoke(tx, speaker.name, own.value.id)
    const { state, delegator, questions } = change.value
    const next = questions.some(({ kind }) => kind === 'help') ? `${delegator} decides` : `${agent} continues`
    return {
      status: 'ok',
      result: isEnd(state) ? `${id} is ${state}` : `${id} is not done; ${next}`,
      details: { task_id: id, claim, state },
    }
  },
})
