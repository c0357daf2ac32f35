import type { AnswerOf } from '../api/contract.ts'
import {
  type ApiCall,
  type ApiContext,
  namedParty,
  type RouteHandler,
  readableParties,
  SENT,
  subjectOf,
} from '../api/handle-request.ts'
import { arrayFrame, streamJson, unauthenticated } from '../api/http-response.ts'
import { parseTime } from '../api/request-input.ts'
import { abortStream, formatEvent, startEventStream } from '../api/sse.ts'
import { streamAudit } from '../audit/store.ts'
import { AppError } from '../base/errors.ts'
import { parseId } from '../base/ids.ts'
import { namedAgent } from '../commands/identity.ts'
import { decideAction } from '../rules/decide.ts'
import type { Store } from '../store/store.ts'
import { countOpen, lastMoved } from './delivery-states.ts'
import { findMail, type Mail, type MailRow, mailboxQuery, readLog, toMail, wireMail } from './messages.ts'
import { costByStep, countByStep, readingTimes, type Span } from './store.ts'

/** The communication log (S1.14): the caller's own messages, and others as the rules allow. */
export const listMessages: RouteHandler<'messages'> = async ({ engine }, call) => {
  const { query } = call
  const team = engine.team()
  const parties = readableParties(team, call)
  const messages = await readLog(engine.store, {
    ...(query.since === undefined ? {} : { since: parseTime(query.since, engine.clock.now()) }),
    ...(query.agent === undefined ? {} : { agent: namedParty(team, query.agent) }),
    ...(query.with === undefined ? {} : { with: namedParty(team, query.with) }),
    ...(query.thread === undefined ? {} : { thread: messageKey(query.thread) }),
    ...(query.before === undefined ? {} : { before: messageKey(query.before) }),
    ...(parties === 'all' ? {} : { parties }),
    limit: query.limit,
  })
  return { messages: messages.map(wireMail) }
}

/** Streams row by row, because a mailbox may be larger than memory. */
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
  // The same error for a message that doesn't exist and for one that the caller may not see.
  if (
    mail === undefined ||
    (parties !== 'all' && !parties.some((name) => name === mail.from || name === mail.to))
  ) {
    throw new AppError('NOT_FOUND', `There is no message ${call.params.id!.slice(0, 100)} for you`, {
      hint: '`orc message list` lists them.',
    })
  }
  const waitsFor = WAITING.has(mail.delivery) ? engine.sessions.waitsFor(mail.to) : undefined
  return {
    ...wireMail(mail),
    steps: await stepsOf(store, mail),
    ...(waitsFor === undefined ? {} : { waits_for: waitsFor }),
  }
}

/** The states in which a message can still wait for its recipient: a blocked runtime holds written messages back. */
const WAITING: ReadonlySet<string> = new Set(['queued', 'written'])

const ENDED: ReadonlySet<string> = new Set(['read', 'failed'])

/** Every step of a delivery is an audit entry with its evidence (C27). */
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
    // No step follows the last one; don't scan the rest of the audit.
    if (ENDED.has(state)) break
  }
  return steps
}

function messageKey(id: string): number {
  const key = parseId('msg', id)
  if (key !== undefined) return key
  throw new AppError('INVALID_REQUEST', `"${id.slice(0, 100)}" is not a valid message id`, {
    hint: 'A message id looks like msg_12.',
  })
}

export const countDeliveries: RouteHandler<'deliveries'> = async ({ engine }, call) => {
  const team = engine.team()
  const named = call.query.agent === undefined ? undefined : namedAgent(team, call.query.agent)
  const all = call.isPerson || decideAction(team.rules, call.callerName, 'query_state').verdict === 'allow'
  const counts = await countOpen(engine.store)
  return {
    deliveries: counts.filter(
      ({ agent }) => (named === undefined || agent === named) && (all || agent === call.callerName),
    ),
  }
}

/** For agents that Orchub doesn't run: they fetch their messages, and get those again that they don't acknowledge. */
export const nextDeliveries: RouteHandler<'nextDeliveries'> = async (context, call) => {
  const agent = subjectOf(context.engine.team(), call, call.query.agent)
  if (call.incoming.headers.accept?.includes('text/event-stream')) {
    await streamDeliveries(context, call, agent)
    return SENT
  }
  const open = context.openCalls.open('poll', call.caller, call.outgoing)
  try {
    const messages = await context.engine.mailboxes.waitForMail(agent, {
      waitMs: call.query.wait * 1000,
      evidence: `fetched by ${call.callerName}`,
      signal: open.signal,
    })
    // If the token was revoked during the wait, return nothing. The messages will be delivered again.
    if (context.engine.tokens.authenticate(call.caller.token) === undefined) {
      throw unauthenticated('The token was revoked')
    }
    if (messages.length === 0 && open.signal.reason instanceof AppError) throw open.signal.reason
    return { messages: messages.map(wireMail) }
  } finally {
    open.done()
  }
}

/** The longest wait for messages before the token and the team are checked again. */
const RECHECK_MS = 15_000

async function streamDeliveries(
  context: ApiContext,
  call: ApiCall<'nextDeliveries'>,
  agent: string,
): Promise<void> {
  const { mailboxes, tokens, team } = context.engine
  const stream = startEventStream(
    call.outgoing,
    context.openCalls.open('deliveries', call.caller, call.outgoing),
  )
  try {
    while (!stream.signal.aborted) {
      const messages = await mailboxes.waitForMail(agent, {
        waitMs: RECHECK_MS,
        evidence: `streamed to ${call.callerName}`,
        signal: stream.signal,
      })
      if (tokens.authenticate(call.caller.token) === undefined || team().resolve(agent) === undefined) return
      for (const mail of messages) {
        stream.send(formatEvent('message', mail.id, JSON.stringify(wireMail(mail))))
      }
      // Take more only after the reader has received these: messages in a socket buffer would be lost with it.
      await stream.drained()
    }
  } catch (error) {
    abortStream(context.engine.log, call.outgoing, error)
  } finally {
    stream.end()
  }
}

const SPANS = {
  '15m': 15 * 60_000,
  '1h': 3600_000,
  '6h': 6 * 3600_000,
  '24h': 24 * 3600_000,
  '7d': 7 * 24 * 3600_000,
}
const STEPS = 60
const SAMPLES = 5000

export const showFigures: RouteHandler<'figures'> = async ({ engine }, { query }) => {
  const { store, clock } = engine
  const stepMs = SPANS[query.span] / STEPS
  // Steps start at round times, so a step's value doesn't depend on the time of the request.
  const from = (Math.floor(clock.now() / stepMs) - STEPS + 1) * stepMs
  const span: Span = { from, stepMs, steps: STEPS }
  const [counted, spent, reading] = await Promise.all([
    countByStep(store, span),
    costByStep(store, span),
    readingTimes(store, span, SAMPLES),
  ])
  const counts: Record<string, number[]> = {}
  for (const { step, type, count } of counted) {
    counts[type] ??= zeros()
    counts[type][step] = count
  }
  const cost = zeros()
  for (const one of spent) cost[one.step] = one.cost
  const times = Array.from({ length: STEPS }, (): number[] => [])
  for (const { step, ms } of reading) times[step]!.push(ms)
  return {
    from: new Date(from).toISOString(),
    step_ms: stepMs,
    counts,
    cost,
    read_ms: { p50: times.map((all) => quantile(all, 0.5)), p95: times.map((all) => quantile(all, 0.95)) },
  }
}

function zeros(): number[] {
  return new Array<number>(STEPS).fill(0)
}

/** Null if there are no values. */
function quantile(values: readonly number[], part: number): number | null {
  if (values.length === 0) return null
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]!
}
