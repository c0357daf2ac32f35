import { stripVTControlCharacters } from 'node:util'
import type { RouteHandler } from '../../api/http/call.ts'
import { namedAgent, visibleAgent } from '../../api/http/permission.ts'
import { AppError } from '../../base/errors.ts'
import { ACTIONS } from '../../protocol/command.ts'

/** Ends an agent's turn, and says whether it truly ended. */
export const interruptAgent: RouteHandler<'interrupt'> = async ({ switchboard }, call) => {
  const agent = namedAgent(switchboard.team(), call.params.agent!)
  const outcome = await switchboard.sessions.interrupt(agent, call.me)
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
export const listActions: RouteHandler<'agentActions'> = ({ switchboard: { sessions, team } }, call) => {
  const agent = namedAgent(team(), call.params.agent!)
  const reasons = [
    ...ACTIONS.map((action) => ({ action, against: sessions.impossible(agent, action) })),
    { action: 'interrupt' as const, against: sessions.isInTurn(agent) ? undefined : notAtWork(agent) },
  ]
  return {
    agent,
    actions: reasons.map(({ action, against }) => ({ action, possible: against === undefined, ...against })),
  }
}

/** The last that an agent said by itself. */
export const showTranscript: RouteHandler<'transcript'> = ({ switchboard }, call) => {
  const agent = visibleAgent(switchboard.team(), call, call.params.agent!)
  return {
    agent,
    said: switchboard.sessions.spoken(agent).map(({ at, text }) => ({
      at: new Date(at).toISOString(),
      text: switchboard.redact(stripVTControlCharacters(text)),
    })),
  }
}
