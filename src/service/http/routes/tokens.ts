import { isOperatorName } from '../../../engine/team.ts'
import { OPERATOR } from '../../../model/agent.ts'
import { AppError } from '../../../model/errors.ts'
import type { RouteHandler } from '../call.ts'
import { namedAgent } from '../permission.ts'

export const listTokens: RouteHandler<'tokens'> = async ({ switchboard }) => ({
  tokens: await switchboard.tokens.list(),
})

export const mintToken: RouteHandler<'mintToken'> = async ({ switchboard }, { body }) => {
  const agent = isOperatorName(body.agent) ? null : namedAgent(switchboard.team(), body.agent)
  const { id, token } = await switchboard.tokens.mint(agent)
  return { id, agent: agent ?? OPERATOR, token }
}

/** An agent that is no longer in the team can still have tokens, so that its name need not be a known one. */
export const revokeTokens: RouteHandler<'revokeTokens'> = async ({ switchboard }, { params }) => {
  const which = switchboard.team().resolve(params.which!) ?? params.which!
  const revoked = await switchboard.tokens.revoke(which)
  if (revoked > 0) return { revoked }
  throw new AppError(
    'NOT_FOUND',
    `There is no valid token ${which.slice(0, 100)}, nor one of such an agent`,
    {
      hint: 'GET /api/v1/tokens (`orc token list`) shows the valid ones.',
    },
  )
}
