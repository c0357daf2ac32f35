import { OPERATOR } from '../base/agent.ts'
import { AppError } from '../base/errors.ts'
import { formatId } from '../base/ids.ts'
import { failure, type Result } from '../base/result.ts'
import type { Handler, HandlerContext } from '../commands/commands.ts'
import { unknownAgent } from '../commands/identity.ts'
import { isOperatorName, personBehind, tooLong } from '../commands/team.ts'
import { findOpenQuestion } from '../people/people.ts'
import type { DecideRequest } from '../people/verdicts.ts'
import type { FieldsOf } from '../protocol/command.ts'
import type { Receipt } from '../protocol/receipt.ts'
import { refusalError } from './core/refusal.ts'
import {
  findReference,
  noTask,
  ownTask,
  questionsPut,
  type Reference,
  remember,
  saidBefore,
  unknownReference,
} from './references.ts'
import { tasksServed } from './store.ts'
import type { Task } from './task.ts'
import type { Tasks } from './tasks.ts'

/** Parents and children may ask each other about the task between them (C11). */
export const queryHandler = (tasks: Tasks): Handler<FieldsOf<'query'>> => ({
  async handle(context, fields) {
    const { tx, team, speaker } = context
    const large = tooLong(team, 'question', fields.question)
    if (large !== undefined) return large
    const duplicate = await openDuplicate(context, fields)
    if (duplicate !== undefined) return duplicate
    const partner = findPartner(context, fields.to)
    if (!partner.ok) return partner.error
    const to = partner.value
    const isAgent = to !== undefined && to !== OPERATOR
    const served = new Set(isAgent ? await tasksServed(tx, speaker.name, to) : [])
    const fits = ({ id, delegator }: Task) => to === undefined || delegator === to || served.has(id)
    const own = await ownTask(tasks, context, fields.in_response_to, fits)
    if (!own.ok) return own.error
    const task = own.value
    if (task === undefined) return noTask(speaker.name)
    const asked = to ?? task.delegator
    const question =
      asked === OPERATOR ? formatId('req', await tx.nextKey('req')) : formatId('msg', await tx.nextKey('msg'))
    const change = await tasks.tell(tx, task.id, {
      type: 'query_asked',
      by: speaker.name,
      question,
      to: asked,
      text: fields.question,
      requiresResponse: fields.requires_response,
    })
    if (!change.ok) return refusalError(change.error)
    remember(context, fields.message_id, question)
    // If the task doesn't wait for the answer, its turn must still end with a report.
    if (fields.requires_response) tasks.spoke(tx, speaker.name, task.id)
    return isAsked(asked, task.id, question)
  },
})

function isAsked(whom: string, task: string, question: string): Receipt {
  return {
    status: 'ok',
    result: `${whom} gets the question; the answer comes as a message`,
    details: { task_id: task, question_id: question },
  }
}

/**
 * Finds the open question that is sent again with the same id, which must not be asked twice (C25). The repetition doesn't
 * count as a response: an agent whose turn contains nothing else gets a reminder.
 */
async function openDuplicate(
  context: HandlerContext,
  fields: FieldsOf<'query'>,
): Promise<Receipt | undefined> {
  const ref = await saidBefore(context, fields.message_id)
  const task = ref === undefined ? undefined : (await findReference(context.tx, ref))?.task
  const question = task?.questions.find(({ id, text }) => id === ref && text === fields.question)
  if (task === undefined || question === undefined) return undefined
  return isAsked(question.to, task.id, question.id)
}

export const answerHandler = (tasks: Tasks, decide: DecideRequest): Handler<FieldsOf<'answer'>> => ({
  async handle(context, fields) {
    const { tx, team, speaker } = context
    const large = tooLong(team, 'answer', fields.answer)
    if (large !== undefined) return large
    const found = await findQuestion(context, fields)
    if (!found.ok) return found.error
    const { task, about } = found.value
    const asPerson = await answerAsPerson(decide, context, found.value, fields.answer)
    if (asPerson !== undefined) return asPerson
    const isKnown = task.seen.includes(about) || task.questions.some(({ id }) => id === about)
    const change = await tasks.tell(tx, task.id, {
      type: 'answered',
      by: speaker.name,
      // An answer to a message of the service itself answers the last question of the task.
      question: isKnown ? about : task.id,
      answer: fields.answer,
    })
    if (!change.ok) return refusalError(change.error)
    remember(context, fields.message_id, task.id)
    const own = await ownTask(tasks, context, undefined)
    if (own.ok && own.value !== undefined) tasks.spoke(tx, speaker.name, own.value.id)
    return { status: 'ok', result: `${task.agent} gets the answer`, details: { task_id: task.id } }
  },
})

/** A person's answer counts like one in the inbox. */
async function answerAsPerson(
  decide: DecideRequest,
  { tx, unsigned, team, speaker }: HandlerContext,
  { task, about }: Reference,
  answer: string,
): Promise<Receipt | AppError | undefined> {
  const person = speaker.name === OPERATOR ? personBehind(team, speaker.principal) : undefined
  const question = task.questions.findLast(
    ({ id, to }) => id === about || (about === task.id && to === OPERATOR),
  )
  if (person === undefined || question?.to !== OPERATOR) return undefined
  const row = await findOpenQuestion(tx, task.id, question.id)
  if (row === undefined) return undefined
  const verdict = { decision: 'answer', comment: answer } as const
  const decided = await decide(unsigned, person, formatId('req', row.id), verdict)
  if (!decided.ok) return decided.error
  return (
    decided.value.receipt ?? {
      status: 'ok',
      result: `${task.agent} gets the answer`,
      details: { task_id: task.id },
    }
  )
}

/** The named question, or the only one that this agent has asked the speaker. */
async function findQuestion(context: HandlerContext, fields: FieldsOf<'answer'>): Promise<Result<Reference>> {
  const { tx, speaker } = context
  if (fields.in_response_to !== undefined) {
    const isPutToIt = ({ task, about }: Reference) =>
      task.questions.some(({ id, to }) => to === speaker.name && (id === about || about === task.id))
    const named = await findReference(tx, fields.in_response_to, isPutToIt)
    return named === undefined ? failure(unknownReference(fields.in_response_to)) : { ok: true, value: named }
  }
  const partner = findPartner(context, fields.to)
  if (!partner.ok) return partner
  const asker = partner.value
  const asking = asker === undefined ? [] : await questionsPut(tx, asker, speaker.name)
  const [only, ...others] = asking
  if (only !== undefined && others.length === 0) return { ok: true, value: only }
  return failure(
    new AppError(
      'NOT_FOUND',
      only === undefined ? 'No question waits for this answer' : `${asker} asked you several questions`,
      { hint: 'Name the question with in_response_to, such as msg_12.' },
    ),
  )
}

function findPartner({ team }: HandlerContext, name: string | undefined): Result<string | undefined> {
  if (name === undefined) return { ok: true, value: undefined }
  const isPerson = isOperatorName(name) || name.trim().toLowerCase() === 'user'
  const partner = isPerson ? OPERATOR : team.resolve(name)
  return partner === undefined ? failure(unknownAgent(team, name)) : { ok: true, value: partner }
}
