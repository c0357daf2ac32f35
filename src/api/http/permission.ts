import { RESERVED_NAMES } from '../../base/agent.ts'
import { AppError } from '../../base/errors.ts'
import { unknownAgent } from '../../commands/identity.ts'
import { personBehind, type Team } from '../../commands/team.ts'
import { decideAction, readableLogs } from '../../rules/decide.ts'
import type { Action } from '../../rules/rule.ts'
import type { Call } from './call.ts'

type Who = Pick<Call, 'me' | 'isOperator'>

/** The agent that a query names, as it is registered. */
export function namedAgent(team: Team, name: string): string {
  const found = team.resolve(name)
  if (found === undefined) throw unknownAgent(team, name)
  return found
}

/** The same where the service and its people count as well: they send messages, and act in the audit. */
export function namedParty(team: Team, name: string): string {
  const lower = name.toLowerCase()
  return RESERVED_NAMES.has(lower) ? lower : namedAgent(team, name)
}

/** The agent a call is about: the caller itself, unless it was granted more (C14). */
export function subjectOf(team: Team, call: Who, named: string | undefined): string {
  if (named === undefined) {
    if (!call.isOperator) return call.me
    throw new AppError('INVALID_REQUEST', 'The operator is no agent, so say which one is meant', {
      hint: `Add ?agent=NAME. Agents: ${team.names.join(', ')}.`,
    })
  }
  const agent = namedAgent(team, named)
  if (agent !== call.me) demand(team, call, 'read_other_mailbox', agent)
  return agent
}

export function demand(team: Team, { me, isOperator }: Who, action: Action, target?: string): void {
  if (isOperator) return
  const { verdict, reason } = decideAction(team.rules, me, action, target)
  if (verdict === 'allow') return
  throw new AppError('FORBIDDEN', verdict === 'deny' ? reason : `A person must be asked first: ${reason}`, {
    hint:
      verdict === 'deny'
        ? `It needs the permission ${action} in orc.yaml.`
        : 'Say it as a command instead: a command can wait for a person, a look cannot.',
  })
}

/** Whose messages the caller may read; its own are always among them. */
export function readableParties(team: Team, { me, isOperator }: Who): readonly string[] | 'all' {
  if (isOperator) return 'all'
  const readable = readableLogs(team.rules, me)
  return readable === 'all' ? 'all' : [...new Set([me, ...readable])]
}

/** The same for looking at its terminal: what one says of people's conduct there is for moderators (S3.15). */
export function visibleAgent(team: Team, { caller }: Pick<Call, 'caller'>, name: string): string {
  const agent = namedAgent(team, name)
  if (!isWithheld(team, { caller }, agent)) return agent
  throw new AppError('FORBIDDEN', `What ${agent} says may be about people, and is for moderators`, {
    hint: 'It is for people with the role moderator in orc.yaml.',
  })
}

/** What this agent says, and what it takes to say it, is for moderators, and the caller is none. */
export function isWithheld(team: Team, { caller }: Pick<Call, 'caller'>, agent: string): boolean {
  return team.isConfidential(agent) && personBehind(team, caller.principal)?.role !== 'moderator'
}
