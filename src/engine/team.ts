import type { Config } from '../config.ts'
import { OPERATOR } from '../model/agent.ts'
import { compileRules, findParty, type Rules } from '../rules/compile.ts'

/** The configuration made ready for the door. Replaced as a whole when orc.yaml changes; nothing in it is edited. */
export interface Team {
  readonly config: Config
  readonly rules: Rules
  readonly names: readonly string[]
  /** The registered spelling: exact match first, then whatever the case (S0.10). */
  resolve(name: string): string | undefined
}

export function createTeam(config: Config): Team {
  const rules = compileRules(config)
  return {
    config,
    rules,
    names: config.agents.map((agent) => agent.name),
    resolve: (name) => findParty(rules, name)?.name,
  }
}

export function isOperatorName(name: string): boolean {
  return name.trim().toLowerCase() === OPERATOR
}
