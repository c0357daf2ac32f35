import { OPERATOR } from '../base/agent.ts'
import { AppError } from '../base/errors.ts'
import { formatId, parseId } from '../base/ids.ts'
import type { Person } from '../base/person.ts'
import { failure, type Result } from '../base/result.ts'
import type { Handler, HandlerContext } from '../commands/commands.ts'
import { personBehind, type Team, tooLong } from '../commands/team.ts'
import type { AnswerForm } from '../people/human-request.ts'
import {
  askPeople,
  findHumanRequest,
  type HumanRequestRow,
  type HumanVerdict,
  openRequestsOf,
} from '../people/people.ts'
import type { DecideRequest } from '../people/verdicts.ts'
import type { FieldsOf } from '../protocol/command.ts'
import type { Receipt } from '../protocol/receipt.ts'
import type { Reader } from '../store/store.ts'
import type { Timers } from '../store/timers.ts'
import { refusalError } from './core/refusal.ts'
import { ownTask, remember, rememberedIds, saidBefore } from './references.ts'
import type { Tasks } from './tasks.ts'

/** Time for the answer to a question outside of tasks. */
const ANSWER_MS = 24 * 3600_000

/** An agent asks a person and continues when there is an answer (S2.4, S2.16). */
export const requestUserInputHandler = (
  tasks: Tasks,
  timers: Pick<Timers, 'setFor'>,
): Handler<FieldsOf<'request_user_input'>> => ({
  async handle(context, fields) {
    const { tx, team, speaker } = context
    if (speaker.name === OPERATOR) {
      return new AppError('INVALID_COMMAND', 'Only agents can ask people', {
        hint: 'People answer with user_response.',
      })
    }
    const large = tooLong(team, 'question', fields.question)
    if (large !== undefined) return large
    const duplicate = await openDuplicate(tasks, context, fields)
    if (duplicate !== undefined) return duplicate
    const read = readForm(fields)
    if (!read.ok) return read.error
    const form = read.value
    const own = await ownTask(tasks, context, fields.in_response_to)
    if (!own.ok) return own.error
    const task = own.value
    const key = await tx.nextKey('req')
    const id = formatId('req', key)
    const awaits = fields.awaiting_response
    if (task === undefined) await askOutsideOfTasks(timers, context, key, fields, form)
    else {
      const change = await tasks.tell(tx, task.id, {
        type: 'user_asked',
        by: speaker.name,
        question: id,
        text: fields.question,
        awaits,
        form,
        ...(fields.context === undefined ? {} : { context: fields.context }),
      })
      if (!change.ok) return refusalError(change.error)
      // If the task doesn't wait for the answer, its turn must still end with a report.
      if (awaits) tasks.spoke(tx, speaker.name, task.id)
    }
    remember(context, fields.message_id, id)
    return isAsked(id, task?.id)
  },
})

function isAsked(request: string, task: string | undefined): Receipt {
  return {
    status: 'ok',
    result: 'a person gets the question; the answer comes as a message',
    details: { request_id: request, ...(task === undefined ? {} : { task_id: task }) },
  }
}

/** Choices must differ, and the default must be one of them unless other answers are allowed. */
function readForm(fields: FieldsOf<'request_user_input'>): Result<AnswerForm> {
  const { choices, default: standard, allow_other: allowOther } = fields
  const known = new Set(choices?.map((choice) => choice.toLowerCase()))
  if (choices !== undefined && known.size < choices.length) {
    return invalidForm('two of the choices are the same', 'Name each choice once.')
  }
  const isOther = standard !== undefined && choices !== undefined && !known.has(standard.toLowerCase())
  if (isOther && !allowOther) {
    return invalidForm(
      '"default" is not one of the choices',
      `Use one of ${choices.join(', ')}, or allow_other="true".`,
    )
  }
  const form = {
    ...(choices === undefined ? {} : { choices }),
    ...(standard === undefined ? {} : { default: standard }),
    ...(choices !== undefined && allowOther ? { allowOther } : {}),
  }
  return { ok: true, value: form }
}

function invalidForm(problem: string, hint: string) {
  return failure(new AppError('INVALID_COMMAND', `request_user_input: ${problem}`, { hint }))
}

/** Finds the open request of a question that is sent again with the same id, which must not be asked twice (C25). */
async function openDuplicate(tasks: Tasks, context: HandlerContext, fields: FieldsOf<'request_user_input'>) {
  const ref = await saidBefore(context, fields.message_id)
  const key = ref === undefined ? undefined : parseId('req', ref)
  const row = key === undefined ? undefined : await findHumanRequest(context.tx, key)
  if (row === undefined || row.state !== 'open' || row.question !== fields.question) return undefined
  const { task } = JSON.parse(row.context) as { task?: string }
  if (task !== undefined) tasks.spoke(context.tx, context.speaker.name, task)
  return isAsked(ref!, task)
}

async function askOutsideOfTasks(
  timers: Pick<Timers, 'setFor'>,
  { tx, team, speaker }: HandlerContext,
  key: number,
  { question, context }: FieldsOf<'request_user_input'>,
  form: AnswerForm,
) {
  const { userInputMs = ANSWER_MS } = team.config.tasks
  await askPeople(tx, {
    key,
    kind: 'input',
    purpose: 'question',
    asker: speaker.name,
    question,
    reason: context ?? `${speaker.name} asks`,
    form,
    expiresAt: userInputMs === null ? null : tx.now + userInputMs,
    timers,
  })
}

interface UserResponseOptions {
  store: Reader
  decide: DecideRequest
  /** A model's objection to a person's answer; must not run in a transaction. */
  checkAnswer(person: Person, request: string, verdict: HumanVerdict): Promise<AppError | undefined>
}

/** Lets a person answer by a command (S2.5), like `orc answer ID TEXT`. */
export const userResponseHandler = ({
  store,
  decide,
  checkAnswer,
}: UserResponseOptions): Handler<FieldsOf<'user_response'>> => ({
  async perform({ team, speaker, commit }, fields) {
    const person = personBehind(team, speaker.principal)
    if (person === undefined) {
      return new AppError('FORBIDDEN', 'Only people can use user_response', {
        hint: 'Agents answer questions with the command answer.',
      })
    }
    const verdict = { decision: 'answer', comment: fields.answer } as const
    const named = await findRequest(store, team, fields)
    const objection = named.ok ? await checkAnswer(person, named.value, verdict) : undefined
    return await commit(async ({ tx, unsigned, team }) => {
      if (objection !== undefined) return objection
      const large = tooLong(team, 'answer', fields.answer)
      if (large !== undefined) return large
      const found = await findRequest(tx, team, fields)
      if (!found.ok) return found.error
      const id = found.value
      const decided = await decide(unsigned, person, id, verdict)
      if (!decided.ok) return decided.error
      return decided.value.receipt ?? ({ status: 'ok', result: `${id} is answered` } satisfies Receipt)
    })
  },
})

/** Finds requests by the id that the asker chose; several askers may have chosen the same. */
async function requestsNamed(reader: Reader, reference: string): Promise<HumanRequestRow[]> {
  const rows: HumanRequestRow[] = []
  for (const ref of await rememberedIds(reader, reference)) {
    const key = parseId('req', ref)
    const row = key === undefined ? undefined : await findHumanRequest(reader, key)
    if (row !== undefined) rows.push(row)
  }
  return rows
}

function severalNamed(reference: string, rows: readonly HumanRequestRow[]): AppError {
  const listed = rows.map(({ id, asker }) => `${formatId('req', id)} (${asker})`).join(', ')
  return new AppError('CONFLICT', `Several open questions are called ${reference.slice(0, 100)}: ${listed}`, {
    hint: 'Name the asker with "to", or the request with in_response_to.',
  })
}

async function findRequest(
  reader: Reader,
  team: Team,
  { in_response_to: reference, to }: FieldsOf<'user_response'>,
): Promise<Result<string>> {
  const asker = to === undefined ? undefined : (team.resolve(to) ?? to)
  if (reference !== undefined) {
    if (parseId('req', reference) !== undefined) return { ok: true, value: reference }
    const named = (await requestsNamed(reader, reference)).filter(
      (row) => asker === undefined || row.asker === asker,
    )
    const waiting = named.filter(({ state }) => state === 'open')
    if (waiting.length > 1) return failure(severalNamed(reference, waiting))
    const [only] = [...waiting, ...named]
    if (only !== undefined) return { ok: true, value: formatId('req', only.id) }
  }
  const open = asker === undefined ? [] : await openRequestsOf(reader, asker)
  const fitting = open.filter(
    ({ kind, context }) =>
      kind === 'input' &&
      (reference === undefined || (JSON.parse(context) as { task?: string }).task === reference),
  )
  if (fitting.length === 1) return { ok: true, value: formatId('req', fitting[0]!.id) }
  return failure(
    new AppError('NOT_FOUND', 'There is no such open question', {
      hint: '`orc inbox` lists open questions; name one with in_response_to.',
    }),
  )
}
