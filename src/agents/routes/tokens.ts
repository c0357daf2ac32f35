import type { Call, RouteHandler } from '../../api/http/call.ts'
import { namedAgent } from '../../api/http/permission.ts'
import { refuseBrowser } from '../../api/http/routes/browser.ts'
import { OPERATOR } from '../../base/agent.ts'
import { AppError } from '../../base/errors.ts'
import { isOperatorName } from '../../commands/team.ts'

export const listTokens: RouteHandler<'tokens'> = async ({ engine }) => ({
  tokens: await engine.tokens.list(),
})

export const mintToken: RouteHandler<'mintToken'> = async ({ engine }, call) => {
  refuseBrowser(call)
  const { tokens } = engine
  const team = engine.team()
  const { agent: name } = call.body
  const person = isOperatorName(name) ? OPERATOR : team.person(name)?.name
  if (person !== undefined) {
    mustBeTheOperator(call)
    const minted = await (person === OPERATOR
      ? tokens.mint(null, call.me)
      : tokens.mintForPerson(person, call.me))
    return { ...minted, agent: person }
  }
  const agent = namedAgent(team, name)
  return { ...(await tokens.mint(agent, call.me)), agent }
}

/** Whoever is no longer in the team can still have tokens, so that the name need not be a known one. */
export const revokeTokens: RouteHandler<'revokeTokens'> = async ({ engine }, call) => {
  const { tokens } = engine
  const team = engine.team()
  const said = call.params.which!
  const which = isOperatorName(said) ? OPERATOR : (team.resolve(said) ?? team.person(said)?.name ?? said)
  const holder = await tokens.holder(which)
  const isAgents = holder === undefined ? team.resolve(which) !== undefined : holder.kind === 'agent'
  const isOwn = which === call.me || (holder?.kind === 'person' && holder.person === call.me)
  if (!isAgents && !isOwn) mustBeTheOperator(call)
  const revoked = await tokens.revoke(which, call.me)
  if (revoked > 0) return { revoked }
  throw new AppError(
    'NOT_FOUND',
    `There is no valid token ${which.slice(0, 100)}, nor one of such an agent or person`,
    {
      hint: 'GET /api/v1/tokens (`orc token list`) shows the valid ones.',
    },
  )
}

/** Whoever could make a token for somebody else could approve in their name, and a quorum would mean nothing. */
function mustBeTheOperator({ caller, me }: Pick<Call, 'caller' | 'me'>) {
  if (caller.principal.kind === 'operator') return
  throw new AppError('FORBIDDEN', `${me} may not give out or revoke the tokens of other people`, {
    hint: "Only the holder of the operator's own token does that: orc token NAME, where the service runs.",
  })
}
