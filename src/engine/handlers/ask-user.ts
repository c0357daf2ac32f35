import { OPERATOR } from '../../model/agent.ts'
import type { FieldsOf } from '../../model/command.ts'
import { AppError } from '../../model/errors.ts'
import { formatId, parseId } from '../../model/identifier.ts'
import type { Receipt } from '../../model/receipt.ts'
import { insertHumanRequest, openRequestsOf } from '../../store/human-requests.ts'
import { rememberedIds } from '../../store/said-ids.ts'
import { setTimer } from '../../store/timers.ts'
import type { HandlerContext } from '../context.ts'
import type { Handler } from '../handler.ts'
import { ownTask, remember } from '../references.ts'
import { refusalError } from '../tasks.ts'

/** For a question outside of any task. */
const ANSWER_MS = 24 * 3600_000

/** An agent asks a person and goes on when there is an answer (S2.4, S2.16). */
export const requestUserInputHandler: Handler<FieldsOf<'request_user_input'>> = {
  async handle(context, fields) {
    const { tx, speaker, parts } = context
    if (speaker.name === OPERATOR) {
      return new AppError('INVALID_COMMAND', 'A person need not ask people', {
        hint: 'Agents ask with this.',
      })
    }
    const task = await ownTask(context, fields.in_response_to)
    if (task instanceof AppError) return task
    const key = await tx.nextKey('req')
    const id = formatId('req', key)
    if (task === undefined) await askOutsideOfTasks(context, key, fields)
    else {
      const told = await parts.tasks.tell(tx, task.id, {
        type: 'user_asked',
        by: speaker.name,
        question: id,
        text: fields.question,
        ...(fields.context === undefined ? {} : { context: fields.context }),
      })
      if (!told.ok) return refusalError(told)
      parts.tasks.spoke(tx, speaker.name, task.id)
    }
    await remember(context, fields.message_id, id)
    return {
      status: 'ok',
      result: 'a person is asked; the answer comes as a message',
      details: { request_id: id, ...(task === undefined ? {} : { task_id: task.id }) },
    }
  },
}

async function askOutsideOfTasks(
  { tx, speaker, parts }: HandlerContext,
  key: number,
  { question, context }: FieldsOf<'request_user_input'>,
) {
  const id = formatId('req', key)
  const expiresAt = tx.now + ANSWER_MS
  await insertHumanRequest(tx, {
    id: key,
    kind: 'input',
    purpose: 'question',
    asker: speaker.name,
    question,
    reason: context ?? `${speaker.name} asks`,
    action: null,
    action_hash: null,
    context: '{}',
    expires_at: expiresAt,
  })
  await setTimer(tx, 'expire_request', id, expiresAt)
  tx.audit({
    type: 'human.asked',
    class: 'internal',
    actor: speaker.name,
    text: `${id}: ${question}`,
    data: { request_id: id, kind: 'input' },
  })
  tx.afterCommit(() => parts.timers.setFor(expiresAt))
}

/** The seed's way for a person to answer (S2.5); the same as `orc answer ID TEXT`. */
export const userResponseHandler: Handler<FieldsOf<'user_response'>> = {
  async handle(context, fields) {
    const { tx, speaker, parts } = context
    if (speaker.principal.kind !== 'operator') {
      return new AppError('FORBIDDEN', 'Only a person answers for people', { hint: 'Use answer.' })
    }
    const id = await findRequest(context, fields)
    if (id instanceof AppError) return id
    const decided = await parts.decide(tx, id, { decision: 'answer', comment: fields.answer })
    if (decided instanceof AppError) return decided
    return decided.receipt ?? ({ status: 'ok', result: `${id} is answered` } satisfies Receipt)
  },
}

async function findRequest(
  { tx, team }: HandlerContext,
  { in_response_to: said, to }: FieldsOf<'user_response'>,
): Promise<string | AppError> {
  if (said !== undefined) {
    if (parseId('req', said) !== undefined) return said
    const remembered = (await rememberedIds(tx, said)).find((ref) => parseId('req', ref) !== undefined)
    if (remembered !== undefined) return remembered
  }
  const asker = to === undefined ? undefined : (team.resolve(to) ?? to)
  const open = asker === undefined ? [] : await openRequestsOf(tx, asker)
  const fitting = open.filter(
    ({ kind, context }) =>
      kind === 'input' && (said === undefined || (JSON.parse(context) as { task?: string }).task === said),
  )
  if (fitting.length === 1) return formatId('req', fitting[0]!.id)
  return new AppError('NOT_FOUND', 'There is no such open question', {
    hint: '`orc inbox` lists them; name one with in_response_to.',
  })
}
