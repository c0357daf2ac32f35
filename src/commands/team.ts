import { AGENT_NAME, foldName, OPERATOR, type Principal } from '../base/agent.ts'
import { AppError } from '../base/errors.ts'
import type { Person } from '../base/person.ts'
import type { Config } from '../config/config.ts'
import { compileRules, findParty, type Rules } from '../rules/compile.ts'

/** The configuration with compiled rules. A change of orc.yaml replaces it as a whole. */
export interface Team {
  readonly config: Config
  readonly rules: Rules
  readonly names: readonly string[]
  /** The registered spelling of a name: an exact match first, then any case (S0.10). */
  resolve(name: string): string | undefined
  /** The person of that name, in any case; never the operator. */
  person(name: string): Person | undefined
  /** Only moderators may read what this agent says (S3.15). */
  isConfidential(agent: string): boolean
}

export function createTeam(config: Config): Team {
  const rules = compileRules(config)
  const people = new Map(config.people.map((person) => [foldName(person.name), person]))
  const resolve = (name: string) => findParty(rules, name)?.name
  const confidential = new Set(config.confidential.map(resolve))
  return {
    config,
    rules,
    names: config.agents.map((agent) => agent.name),
    resolve,
    person: (name) => (AGENT_NAME.test(name) ? people.get(foldName(name)) : undefined),
    isConfidential: (agent) => confidential.has(agent),
  }
}

const THE_OPERATOR: Person = { name: OPERATOR, role: 'operator' }

/** The person who speaks, if orc.yaml still names them. */
export function personBehind(team: Team, principal: Principal): Person | undefined {
  if (principal.kind === 'operator') return THE_OPERATOR
  return principal.kind === 'person' ? team.person(principal.person) : undefined
}

export function isOperatorName(name: string): boolean {
  return name.trim().toLowerCase() === OPERATOR
}

/** `operator` for each of the operator's names, otherwise the result of `lookUp`. */
export function operatorOr<T>(name: string, lookUp: (name: string) => T): string | T {
  return isOperatorName(name) ? OPERATOR : lookUp(name)
}

/** Text that is too long is refused whole, never cut (C20). */
export function tooLong({ config }: Team, what: string, ...texts: readonly string[]): AppError | undefined {
  const most = config.limits.messageBytes
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  if (bytes <= most) return undefined
  return new AppError('TOO_LARGE', `The ${what} is ${bytes} bytes; the limit is ${most}`, {
    hint: 'Put the details into a file and name its path.',
  })
}
