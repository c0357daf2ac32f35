import { foldName, OPERATOR, type Principal } from '../base/agent.ts'
import { AppError } from '../base/errors.ts'
import type { Person } from '../base/person.ts'
import type { Result } from '../base/result.ts'
import { didYouMean } from '../base/suggestion.ts'
import { CLAIMS, type CommandDefinition, type RawCommand } from '../protocol/command.ts'
import { decideAction } from '../rules/decide.ts'
import type { Action, Decision } from '../rules/rule.ts'
import type { Tx } from '../store/store.ts'
import type { HandlerContext, Speaker } from './commands.ts'
import { isOperatorName, personBehind, type Team } from './team.ts'

/** Identity comes from the transport (C3); a sender named in the command must agree with it. */
export function identify(team: Team, principal: Principal, raw: RawCommand): Result<Speaker> {
  const claims = claimedSenders(raw)
  if (principal.kind === 'agent') {
    const name = team.resolve(principal.agent)
    if (name === undefined) return { ok: false, error: noLongerRegistered(principal.agent) }
    const other = claims.find((claim) => foldName(claim) !== foldName(name))
    if (other !== undefined) return { ok: false, error: senderMismatch(name, other) }
    return { ok: true, value: { name, principal, onBehalf: false } }
  }
  const person = personBehind(team, principal)
  if (person === undefined) return { ok: false, error: noLongerAmongPeople(principal) }
  const claimed = claims[0]
  const other = claims.find((claim) => foldName(claim) !== foldName(claimed!))
  if (other !== undefined) return { ok: false, error: senderMismatch(claimed!, other) }
  if (claimed === undefined || isOperatorName(claimed) || foldName(claimed) === foldName(person.name)) {
    return { ok: true, value: { name: OPERATOR, principal, person: person.name, onBehalf: false } }
  }
  if (team.person(claimed) !== undefined) return { ok: false, error: senderMismatch(person.name, claimed) }
  const name = team.resolve(claimed)
  if (name === undefined) return { ok: false, error: unknownAgent(team, claimed) }
  return { ok: true, value: { name, principal, person: person.name, onBehalf: true } }
}

function claimedSenders(raw: RawCommand): string[] {
  const claims: string[] = []
  for (const key of Object.keys(raw.fields)) {
    if (!CLAIMS.has(key) && !CLAIMS.has(key.toLowerCase().replaceAll('-', '_'))) continue
    const value = raw.fields[key]
    if (value === undefined || value === null) continue
    // A value that isn't text cannot be the speaker's name.
    const text = typeof value === 'string' ? value.trim() : '(not a name)'
    if (text !== '') claims.push(text)
  }
  return claims
}

/** The agent that a command is about: the speaker, unless the command names another (C14). */
export function subjectOf(
  team: Team,
  definition: CommandDefinition,
  speaker: Speaker,
  fields: Record<string, unknown>,
): Result<string> {
  const named = definition.subject === undefined ? undefined : fields[definition.subject.field]
  if (typeof named !== 'string') {
    if (speaker.name !== OPERATOR) return { ok: true, value: speaker.name }
    return {
      ok: false,
      error: new AppError('INVALID_COMMAND', `${definition.type}: name an agent; the operator is not one`, {
        hint: `Add the agent's name: --agent NAME. Agents: ${team.names.join(', ')}.`,
      }),
    }
  }
  const name = team.resolve(named)
  return name === undefined ? { ok: false, error: unknownAgent(team, named) } : { ok: true, value: name }
}

/** Resolves an agent's name to its registered spelling, or throws. */
export function namedAgent(team: Team, name: string): string {
  const found = team.resolve(name)
  if (found === undefined) throw unknownAgent(team, name)
  return found
}

/** Like `namedAgent` for terminals and transcripts: an agent that judges people's conduct is visible to moderators only (S3.15). */
export function visibleAgent(team: Team, principal: Principal, name: string): string {
  const agent = namedAgent(team, name)
  if (!isWithheld(team, principal, agent)) return agent
  throw new AppError('FORBIDDEN', `Only moderators may see what ${agent} writes: it may be about people`, {
    hint: 'People with the role moderator in orc.yaml can see it.',
  })
}

/** Whether this agent's output and spending are for moderators only and the caller is not one. */
export function isWithheld(team: Team, principal: Principal, agent: string): boolean {
  return team.isConfidential(agent) && personBehind(team, principal)?.role !== 'moderator'
}

export function unknownAgent(team: Team, name: string): AppError {
  return new AppError('UNKNOWN_AGENT', `Unknown agent: ${name.slice(0, 100)}`, {
    hint: `${didYouMean(name, team.names, '')} Valid agents: ${team.names.join(', ')}.`.trim(),
  })
}

function noLongerRegistered(name: string): AppError {
  return new AppError('FORBIDDEN', `${name} is no longer in the team`, {
    hint: 'Its token is still valid, but orc.yaml no longer names it.',
  })
}

/** The token is valid, but orc.yaml no longer names its holder. */
export function noLongerAmongPeople(principal: Principal): AppError {
  const name = principal.kind === 'person' ? principal.person : OPERATOR
  return new AppError('FORBIDDEN', `${name} is no longer one of the people of this team`, {
    hint: 'The token is still valid, but "people" in orc.yaml no longer names them.',
  })
}

export function peopleOnly(): AppError {
  return new AppError('FORBIDDEN', 'Only the operator may do this', {
    // Agents read this and might act on it, so it must not explain how to become the operator.
    hint: 'A person decides this. Continue with other work, or tell them what you need.',
  })
}

export function noTokensForBrowsers(): AppError {
  return new AppError('FORBIDDEN', 'A browser session cannot create tokens or sign-in links', {
    hint: 'Use `orc token create NAME` or `orc open` on the machine where the service runs.',
  })
}

export function changesNothing({ name, role }: Person): AppError {
  return new AppError('FORBIDDEN', `${name} may read everything but change nothing`, {
    hint: `The role of ${name} in orc.yaml is ${role}. The operator can change that.`,
  })
}

function senderMismatch(name: string, claimed: string): AppError {
  return new AppError('SENDER_MISMATCH', `You are ${name}, not ${claimed.slice(0, 100)}; nothing was done`, {
    hint: `Leave "from" out, or say from="${name}".`,
    data: { claimed: claimed.slice(0, 100) },
  })
}

/** Audit data that names the person who spoke for an agent. */
export function saidBy({ onBehalf, person = OPERATOR }: Speaker): { said_by?: string } {
  return onBehalf ? { said_by: person } : {}
}

/** Rules treat every person as the operator; this makes the audit name the person. */
export function signedBy(tx: Tx, person: string | undefined): Tx {
  if (person === undefined || person === OPERATOR) return tx
  return {
    ...tx,
    audit: (draft) => tx.audit(draft.actor === OPERATOR ? { ...draft, actor: person } : draft),
  }
}

const OWN: Decision = { verdict: 'allow', rule: 'built-in: its own', reason: '' }

/** An agent may always act on itself; for another it needs the permission that the definition names (C14). */
export function decideSubject(
  { team, speaker }: HandlerContext,
  fields: Record<string, unknown>,
  definition: CommandDefinition,
): Decision | AppError {
  const subject = subjectOf(team, definition, speaker, fields)
  if (!subject.ok) return subject.error
  if (subject.value === speaker.name || speaker.name === OPERATOR) return OWN
  const permission = definition.subject!.permission as Action
  const decision = decideAction(team.rules, speaker.name, permission, subject.value)
  if (decision.verdict !== 'deny') return decision
  // C3: naming another agent without the permission is a security matter, not a rule between two agents.
  return new AppError('FORBIDDEN', `You are ${speaker.name}: ${decision.reason}`, {
    hint: `Leave "${definition.subject!.field}" out. For another agent it needs the permission ${permission}.`,
    data: { named: subject.value },
  })
}

/** The subject, after `decideSubject` has allowed it. */
export function subjectAllowed(
  { team, speaker }: HandlerContext,
  fields: Record<string, unknown>,
  definition: CommandDefinition,
): string {
  const subject = subjectOf(team, definition, speaker, fields)
  if (!subject.ok) throw subject.error
  return subject.value
}
