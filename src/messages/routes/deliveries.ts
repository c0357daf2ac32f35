import type { ServerResponse } from 'node:http'
import { type Call, type Desk, type RouteHandler, SENT } from '../../api/http/call.ts'
import { formatEvent, startEventStream } from '../../api/http/event-stream.ts'
import { unauthenticated } from '../../api/http/gate.ts'
import { namedAgent, subjectOf } from '../../api/http/permission.ts'
import { AppError } from '../../base/errors.ts'
import { decideAction } from '../../rules/decide.ts'
import { countOpen } from '../store/deliveries.ts'
import { wireMail } from '../wire-mail.ts'
import { mailAnswer } from './messages.ts'

export const countDeliveries: RouteHandler<'deliveries'> = async ({ engine }, call) => {
  const team = engine.team()
  const named = call.query.agent === undefined ? undefined : namedAgent(team, call.query.agent)
  const all = call.isOperator || decideAction(team.rules, call.me, 'query_state').verdict === 'allow'
  const counts = await countOpen(engine.store)
  return {
    deliveries: counts.filter(
      ({ agent }) => (named === undefined || agent === named) && (all || agent === call.me),
    ),
  }
}

/** For agents without a runtime of ours: they fetch their mail and acknowledge it by id, or it comes again. */
export const nextDeliveries: RouteHandler<'nextDeliveries'> = async (desk, call) => {
  const agent = subjectOf(desk.engine.team(), call, call.query.agent)
  if (call.incoming.headers.accept?.includes('text/event-stream')) {
    await streamDeliveries(desk, call, agent)
    return SENT
  }
  const open = desk.openCalls.open('poll', call.caller, call.outgoing)
  try {
    const messages = await desk.engine.mailboxes.waitForMail(agent, {
      waitMs: call.query.wait * 1000,
      evidence: `fetched by ${call.me}`,
      signal: open.signal,
    })
    // Revoked while it waited: what it took is not given to it, and comes again.
    if (desk.engine.tokens.authenticate(call.caller.token) === undefined) {
      throw unauthenticated('The token was revoked')
    }
    if (messages.length === 0 && open.signal.reason instanceof AppError) throw open.signal.reason
    return { messages: messages.map(mailAnswer) }
  } finally {
    open.done()
  }
}

/** How long one look for mail lasts; then the token and the team are looked at again. */
const LOOK_MS = 15_000

async function streamDeliveries(desk: Desk, call: Call<'nextDeliveries'>, agent: string): Promise<void> {
  const { mailboxes, tokens, team } = desk.engine
  const stream = startEventStream(
    call.outgoing,
    desk.openCalls.open('deliveries', call.caller, call.outgoing),
  )
  try {
    while (!stream.signal.aborted) {
      const messages = await mailboxes.waitForMail(agent, {
        waitMs: LOOK_MS,
        evidence: `streamed to ${call.me}`,
        signal: stream.signal,
      })
      if (tokens.authenticate(call.caller.token) === undefined || team().resolve(agent) === undefined) return
      for (const mail of messages) {
        stream.send(formatEvent('message', mail.id, JSON.stringify(wireMail(mail))))
      }
      // The next ones are taken only when the reader has these: what waits in a socket is in nobody's hands.
      await stream.drained()
    }
  } catch (error) {
    breakOff(desk, call.outgoing, error)
  } finally {
    stream.end()
  }
}

/** The reader connects again, and gets an answer that says what is wrong. */
export function breakOff({ engine }: Desk, outgoing: ServerResponse, error: unknown) {
  if (!outgoing.destroyed) engine.log.error({ err: error }, 'a stream broke off')
  outgoing.destroy()
}
