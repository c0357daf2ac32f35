import type { AnswerOf, MailAnswer } from '../../api/contract.ts'
import { type RouteHandler, SENT } from '../../api/http/call.ts'
import { arrayFrame, streamJson } from '../../api/http/json-stream.ts'
import { namedParty, readableParties, subjectOf } from '../../api/http/permission.ts'
import { parseSince, SINCE_FORMS } from '../../audit/since.ts'
import { streamAudit } from '../../audit/store.ts'
import { AppError } from '../../base/errors.ts'
import { parseId } from '../../base/ids.ts'
import type { Store } from '../../store/store.ts'
import { lastMoved } from '../store/deliveries.ts'
import { findMail, type Mail, type MailRow, mailboxQuery, readLog, toMail } from '../store/messages.ts'
import { wireMail } from '../wire-mail.ts'

export function mailAnswer(mail: Mail): MailAnswer {
  return wireMail(mail) as MailAnswer
}

/** The communication log (S1.14): one's own, and those of others as the rules say. */
export const listMessages: RouteHandler<'messages'> = async ({ engine }, call) => {
  const { query } = call
  const team = engine.team()
  const parties = readableParties(team, call)
  const messages = await readLog(engine.store, {
    ...(query.since === undefined ? {} : { since: moment(query.since, engine.clock.now()) }),
    ...(query.agent === undefined ? {} : { agent: namedParty(team, query.agent) }),
    ...(query.with === undefined ? {} : { with: namedParty(team, query.with) }),
    ...(query.thread === undefined ? {} : { thread: messageKey(query.thread) }),
    ...(query.before === undefined ? {} : { before: messageKey(query.before) }),
    ...(parties === 'all' ? {} : { parties }),
    limit: query.limit,
  })
  return { messages: messages.map(mailAnswer) }
}

/** A mailbox may be larger than memory, so that it goes out row by row. */
export const showMailbox: RouteHandler<'mailbox'> = async ({ engine }, call) => {
  const { query, outgoing } = call
  const agent = subjectOf(engine.team(), call, query.agent)
  const { sql, params } = mailboxQuery(agent, query.filter, {
    ...(query.after === undefined ? {} : { after: messageKey(query.after) }),
    ...(query.limit === undefined ? {} : { limit: query.limit }),
  })
  await streamJson(outgoing, arrayFrame('messages'), mails(engine.store, sql, params))
  return SENT
}

async function* mails(store: Store, sql: string, params: readonly (string | number)[]) {
  for await (const row of store.stream<MailRow>(sql, params)) yield JSON.stringify(wireMail(toMail(row)))
}

export const showMessage: RouteHandler<'message'> = async ({ engine }, call) => {
  const { store } = engine
  const mail = await findMail(store, messageKey(call.params.id!))
  const parties = readableParties(engine.team(), call)
  // Whether it is there is nobody else's business either.
  if (
    mail === undefined ||
    (parties !== 'all' && !parties.some((name) => name === mail.from || name === mail.to))
  ) {
    throw new AppError('NOT_FOUND', `There is no message ${call.params.id!.slice(0, 100)} for you`, {
      hint: '`orc messages` lists them.',
    })
  }
  const waitsFor = WAITING.has(mail.delivery) ? engine.sessions.waitsFor(mail.to) : undefined
  return {
    ...mailAnswer(mail),
    steps: await stepsOf(store, mail),
    ...(waitsFor === undefined ? {} : { waits_for: waitsFor }),
  }
}

/** While something is in the way, a runtime holds what was given to it, unwritten. */
const WAITING: ReadonlySet<string> = new Set(['queued', 'written'])

const ENDED: ReadonlySet<string> = new Set(['read', 'failed'])

/** Every step of the delivery is an entry of the audit, with its evidence (C27). */
async function stepsOf(store: Store, mail: Mail): Promise<AnswerOf<'message'>['steps']> {
  const steps: AnswerOf<'message'>['steps'] = [
    { at: mail.at, state: 'queued', evidence: 'stored in the mailbox' },
  ]
  const entries = streamAudit(store, {
    since: Date.parse(mail.at),
    until: (await lastMoved(store, mail.to, messageKey(mail.id))) ?? 0,
    agent: mail.to,
    type: 'delivery',
    text: `"message_id":"${mail.id}"`,
  })
  for await (const { at, data } of entries) {
    const { state, evidence } = JSON.parse(data) as { state: string; evidence: string }
    steps.push({ at: new Date(at).toISOString(), state, evidence })
    // Nothing comes after the end, and the log may go on for long.
    if (ENDED.has(state)) break
  }
  return steps
}

function messageKey(id: string): number {
  const key = parseId('msg', id)
  if (key !== undefined) return key
  throw new AppError('INVALID_REQUEST', `"${id.slice(0, 100)}" is no id of a message`, {
    hint: 'A message id looks like msg_12.',
  })
}

/** A time, or a span back from now, as epoch milliseconds. */
export function moment(text: string, now: number): number {
  const date = parseSince(text, new Date(now))
  if (date !== undefined) return date.getTime()
  throw new AppError('INVALID_REQUEST', `"${text.slice(0, 100)}" is no time`, { hint: `Use ${SINCE_FORMS}.` })
}
