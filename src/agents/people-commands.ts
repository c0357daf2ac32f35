import { OPERATOR } from '../base/agent.ts'
import { AppError } from '../base/errors.ts'
import { type CommandCall, type CommandEntry, commandEntry, receiptOf } from '../commands/commands.ts'
import { namedAgent, noTokensForBrowsers, visibleAgent } from '../commands/identity.ts'
import { operatorOr } from '../commands/team.ts'
import type { Tokens } from '../commands/tokens.ts'
import { createToken, interruptAgent, releaseTerminal, revokeTokens, takeTerminal, typeKeys } from './api.ts'
import type { Sessions } from './sessions.ts'
import { type TerminalHolders, terminalHolder } from './terminals.ts'

export interface AgentCommandsForPeopleOptions {
  sessions: Pick<Sessions, 'interrupt'>
  terminals: Pick<TerminalHolders, 'take' | 'release' | 'keyboard'>
  tokens: Pick<Tokens, 'mint' | 'mintForPerson' | 'revoke' | 'holder'>
}

/** The commands by which people interrupt agents, use their terminals and manage tokens. */
export function agentCommandsForPeople({
  sessions,
  terminals,
  tokens,
}: AgentCommandsForPeopleOptions): CommandEntry[] {
  const holderOf = ({ speaker }: CommandCall) => terminalHolder(speaker.person!, speaker.principal)
  const visible = ({ team, speaker }: CommandCall, agent: string) =>
    visibleAgent(team, speaker.principal, agent)

  return [
    commandEntry(interruptAgent, {
      async perform({ team, speaker }, fields) {
        const agent = namedAgent(team, fields.agent)
        const outcome = await sessions.interrupt(agent, speaker.person!)
        if (outcome !== undefined) {
          return receiptOf(interruptAgent, `${agent}: ${outcome.evidence}`, outcome)
        }
        const { reason, hint } = notWorking(agent)
        return new AppError('CONFLICT', reason, { hint })
      },
    }),
    commandEntry(takeTerminal, {
      async perform(call, fields) {
        const agent = visible(call, fields.agent)
        const holder = holderOf(call)
        await terminals.take(agent, holder)
        return receiptOf(takeTerminal, `The terminal of ${agent} is yours`, {
          status: 'taken',
          by: holder.name,
        })
      },
    }),
    commandEntry(releaseTerminal, {
      async perform(call, fields) {
        const agent = visible(call, fields.agent)
        await terminals.release(agent, holderOf(call))
        return receiptOf(releaseTerminal, `The terminal of ${agent} is free`, { status: 'free' })
      },
    }),
    commandEntry(typeKeys, {
      // A password may be among the keys, and a digest of few keys can be guessed.
      ignoresKey: true,
      async perform(call, { agent, keys, paste }) {
        const keyboard = terminals.keyboard(visible(call, agent), holderOf(call))
        await (paste === true ? keyboard.paste(keys) : keyboard.type(keys))
        return receiptOf(typeKeys, 'Typed', { status: 'typed' })
      },
    }),
    commandEntry(createToken, {
      // The receipt holds the token.
      ignoresKey: true,
      async perform({ team, speaker }, { agent: name }) {
        const { principal } = speaker
        if (principal.kind !== 'agent' && principal.isSession) return noTokensForBrowsers()
        const by = speaker.person!
        const person = operatorOr(name, (one) => team.person(one)?.name)
        if (person === undefined) {
          const agent = namedAgent(team, name)
          const minted = await tokens.mint(agent, by)
          return receiptOf(createToken, `Created ${minted.id} for ${agent}`, { ...minted, agent })
        }
        if (speaker.principal.kind !== 'operator') return notTheOperator(by)
        const minted = await (person === OPERATOR ? tokens.mint(null, by) : tokens.mintForPerson(person, by))
        return receiptOf(createToken, `Created ${minted.id} for ${person}`, { ...minted, agent: person })
      },
    }),
    commandEntry(revokeTokens, {
      /** Accepts unknown names too: an agent or person removed from orc.yaml can still have tokens. */
      async perform({ team, speaker }, fields) {
        const by = speaker.person!
        const which = operatorOr(fields.which, (one) => team.resolve(one) ?? team.person(one)?.name ?? one)
        const holder = await tokens.holder(which)
        const isAgents = holder === undefined ? team.resolve(which) !== undefined : holder.kind === 'agent'
        const isOwn = which === by || (holder?.kind === 'person' && holder.person === by)
        if (!isAgents && !isOwn && speaker.principal.kind !== 'operator') return notTheOperator(by)
        const revoked = await tokens.revoke(which, by)
        if (revoked > 0) return receiptOf(revokeTokens, `Revoked ${revoked}`, { revoked })
        return new AppError(
          'NOT_FOUND',
          `There is no valid token with the id ${which.slice(0, 100)}, and no agent or person of that name has one`,
          { hint: 'GET /api/v1/tokens (`orc token list`) shows the valid ones.' },
        )
      },
    }),
  ]
}

export function notWorking(agent: string) {
  return {
    reason: `${agent} is not working, so there is nothing to interrupt`,
    hint: 'To hold back messages from it, pause it.',
  }
}

/** A person who could create tokens for others could approve in their name, which would defeat any quorum. */
function notTheOperator(person: string): AppError {
  return new AppError('FORBIDDEN', `${person} may not create or revoke tokens of other people`, {
    hint: "This needs the operator's own token: run `orc token create NAME` on the machine where the service runs.",
  })
}
