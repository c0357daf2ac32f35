import { foldName, OPERATOR, type Principal } from '../model/agent.ts'
import { CLAIMS, type CommandDefinition, type SaidCommand } from '../model/command.ts'
import { AppError } from '../model/errors.ts'
import type { Outcome, Speaker } from './context.ts'
import { isOperatorName, type Team } from './team.ts'

/** Identity comes from the transport (C3); what the command says of its sender must agree with it. */
export function identify(team: Team, principal: Principal, said: SaidCommand): Outcome<Speaker> {
  const claims = claimedSenders(said)
  if (principal.kind === 'agent') {
    const name = team.resolve(principal.agent)
    if (name === undefined) return { ok: false, error: noLongerRegistered(principal.agent) }
    const other = claims.find((claim) => foldName(claim) !== foldName(name))
    if (other !== undefined) return { ok: false, error: senderMismatch(name, other) }
    return { ok: true, value: { name, principal, onBehalf: false } }
  }
  const claimed = claims[0]
  const other = claims.find((claim) => foldName(claim) !== foldName(claimed!))
  if (other !== undefined) return { ok: false, error: senderMismatch(claimed!, other) }
  if (claimed === undefined || isOperatorName(claimed)) {
    return { ok: true, value: { name: OPERATOR, principal, onBehalf: false } }
  }
  const name = team.resolve(claimed)
  if (name === undefined) return { ok: false, error: unknownAgent(team, claimed) }
  return { ok: true, value: { name, principal, onBehalf: true } }
}

function claimedSenders(said: SaidCommand): string[] {
  const claims: string[] = []
  for (const key of Object.keys(said.fields)) {
    if (!CLAIMS.has(key) && !CLAIMS.has(key.toLowerCase().replaceAll('-', '_'))) continue
    const value = said.fields[key]
    if (value === undefined || value === null) continue
    // Whatever is no text names nobody, and so never the speaker.
    const text = typeof value === 'string' ? value.trim() : '(not a name)'
    if (text !== '') claims.push(text)
  }
  return claims
}

/** The agent a command is about: the caller itself, unless it names another (C14). */
export function subjectOf(
  team: Team,
  definition: CommandDefinition,
  speaker: Speaker,
  fields: Record<string, unknown>,
): Outcome<string> {
  const named = definition.subject === undefined ? undefined : fields[definition.subject.field]
  if (typeof named !== 'string') {
    if (speaker.name !== OPERATOR) return { ok: true, value: speaker.name }
    return {
      ok: false,
      error: new AppError(
        'INVALID_COMMAND',
        `${definition.type}: the operator is no agent, so say which one is meant`,
        {
          hint: `Add the agent's name: --agent NAME. Agents: ${team.names.join(', ')}.`,
        },
      ),
    }
  }
  const name = team.resolve(named)
  return name === undefined ? { ok: false, error: unknownAgent(team, named) } : { ok: true, value: name }
}

export function unknownAgent(team: Team, name: string): AppError {
  return new AppError('UNKNOWN_AGENT', `Unknown agent: ${name.slice(0, 100)}`, {
    hint: `Valid agents: ${team.names.join(', ')}.`,
  })
}

function noLongerRegistered(name: string): AppError {
  return new AppError('FORBIDDEN', `${name} is no longer in the team`, {
    hint: 'Its token is still known, but orc.yaml does not name it any more.',
  })
}

function senderMismatch(name: string, claimed: string): AppError {
  return new AppError('SENDER_MISMATCH', `You are ${name}, not ${claimed.slice(0, 100)}; nothing was done`, {
    hint: `Leave "from" out, or say from="${name}".`,
    data: { claimed: claimed.slice(0, 100) },
  })
}

/** For the audit: who really spoke, where the operator spoke for an agent. */
export function behalf(speaker: Speaker): { said_by?: string } {
  return speaker.onBehalf ? { said_by: OPERATOR } : {}
}
