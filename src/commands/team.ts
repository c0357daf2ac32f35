import { AGENT_NAME, foldName, OPERATOR, type Principal } from '../base/agent.ts'
import type { Person } from '../base/person.ts'
import type { Config } from '../config/config.ts'
import { compileRules, findParty, type Rules } from '../rules/compile.ts'

/** The configuration made ready for the door. Replaced as a whole when orc.yaml changes; nothing in it is edited. */
export interface Team {
  readonly config: Config
  readonly rules: Rules
  readonly names: readonly string[]
  /** The registered spelling: exact match first, then whatever the case (S0.10). */
  resolve(name: string): string | undefined
  /** The person of that name, whatever its case; the operator is not among them. */
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

/** Who speaks, if it is a person who is still among the people of orc.yaml. */
export function personBehind(team: Team, principal: Principal): Person | undefined {
  if (principal.kind === 'operator') return THE_OPERATOR
  return principal.kind === 'person' ? team.person(principal.person) : undefined
}

export function isOperatorName(name: string): boolean {
  return name.trim().toLowerCase() === OPERATOR
}
