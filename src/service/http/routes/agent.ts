import { stripVTControlCharacters } from 'node:util'
import { AppError } from '../../../model/errors.ts'
import type { RouteHandler } from '../call.ts'
import { namedAgent, visibleAgent } from '../permission.ts'

/** Ends an agent's turn, and says whether it truly ended. */
export const interruptAgent: RouteHandler<'interrupt'> = async ({ switchboard }, call) => {
  const agent = namedAgent(switchboard.team(), call.params.agent!)
  const outcome = await switchboard.sessions.interrupt(agent, call.me)
  if (outcome !== undefined) return outcome
  throw new AppError('CONFLICT', `${agent} is not at work, so that there is nothing to interrupt`, {
    hint: 'Pause it to keep messages from it.',
  })
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
