import { stripVTControlCharacters } from 'node:util'
import type { RouteHandler } from '../../api/http/call.ts'
import { namedAgent, visibleAgent } from '../../api/http/permission.ts'
import { AppError } from '../../base/errors.ts'
import { AGENT_ACTIONS } from '../../protocol/command.ts'

/** Ends an agent's turn, and says whether it truly ended. */
export const interruptAgent: RouteHandler<'interrupt'> = async ({ engine }, call) => {
  const agent = namedAgent(engine.team(), call.params.agent!)
  const outcome = await engine.sessions.interrupt(agent, call.me)
  if (outcome !== undefined) return outcome
  const { reason, hint } = notAtWork(agent)
  throw new AppError('CONFLICT', reason, { hint })
}

function notAtWork(agent: string) {
  return {
    reason: `${agent} is not at work, so that there is nothing to interrupt`,
    hint: 'Pause it to keep messages from it.',
  }
}

/** What whoever asks for it would be told. */
export const listActions: RouteHandler<'agentActions'> = ({ engine: { sessions, team } }, call) => {
  const agent = namedAgent(team(), call.params.agent!)
  const reasons = [
    ...AGENT_ACTIONS.map((action) => ({ action, against: sessions.impossible(agent, action) })),
    { action: 'interrupt' as const, against: sessions.isInTurn(agent) ? undefined : notAtWork(agent) },
  ]
  return {
    agent,
    actions: reasons.map(({ action, against }) => ({ action, possible: against === undefined, ...against })),
  }
}

/** The last that an agent said by itself. */
export const showTranscript: RouteHandler<'transcript'> = ({ engine }, call) => {
  const agent = visibleAgent(engine.team(), call, call.params.agent!)
  return {
    agent,
    said: engine.sessions.recentOutput(agent).map(({ at, text }) => ({
      at: new Date(at).toISOString(),
      text: engine.redact(stripVTControlCharacters(text)),
    })),
  }
}
