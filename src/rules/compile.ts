import { AGENT_NAME, EVERYONE, foldName, OPERATOR } from '../base/agent.ts'
import type { Decision, Permissions, Policy, Rule, Who } from './rule.ts'

/** A policy prepared for fast decisions. Immutable: compile a new one when orc.yaml changes. */
export interface Rules {
  readonly policy: Policy
  /** By canonical and by folded name. The two never clash, because names are unique ignoring case. */
  readonly byName: ReadonlyMap<string, Party>
  readonly forbid: readonly CompiledRule[]
  readonly ask: readonly CompiledRule[]
  readonly allow: readonly CompiledRule[]
  /** Decisions so far, by pair of agents. Unknown names are never added, so agents² bounds it. */
  readonly memo: Map<number, Decision>
}

export interface Party {
  readonly name: string
  readonly index: number
  readonly parent: string | undefined
  readonly send: Matcher | undefined
  readonly receive: Matcher | undefined
  readonly permissions: Permissions
}

export interface CompiledRule {
  readonly path: string
  readonly from: Matcher
  readonly to: Matcher
  readonly reason: string | undefined
}

type Matcher = (name: string) => boolean

export function compileRules(policy: Policy): Rules {
  const canonical = new Map(policy.agents.map((agent) => [foldName(agent.name), agent]))
  const byName = new Map<string, Party>()
  policy.agents.forEach((agent, index) => {
    const parent = agent.parent === undefined ? undefined : canonical.get(foldName(agent.parent))
    const party: Party = {
      name: agent.name,
      index,
      parent: parent?.name,
      send: agent.send && matcher(agent.send),
      receive: agent.receive && matcher(agent.receive),
      permissions: agent.permissions,
    }
    byName.set(agent.name, party)
    byName.set(foldName(agent.name), party)
  })
  const { forbid, ask, allow } = policy.rules
  return {
    policy,
    byName,
    forbid: compileList('forbid', forbid),
    ask: compileList('ask', ask),
    allow: compileList('allow', allow),
    memo: new Map(),
  }
}

/** Finds an agent by name, ignoring case (S0.10). */
export function findParty(rules: Rules, name: string): Party | undefined {
  // Fold valid names only: Unicode would fold a Kelvin sign into "k".
  return rules.byName.get(name) ?? (AGENT_NAME.test(name) ? rules.byName.get(foldName(name)) : undefined)
}

export function isOperator(name: string): boolean {
  return name === OPERATOR || (name.length === OPERATOR.length && foldName(name) === OPERATOR)
}

/** Whether `party` is an ancestor of `other`. */
export function oversees(rules: Rules, party: Party, other: Party): boolean {
  // The config rejects circular parents; the bound keeps a hand-made policy from hanging the service.
  let steps = rules.policy.agents.length
  for (let name = other.parent; name !== undefined && steps > 0; steps--) {
    if (name === party.name) return true
    name = rules.byName.get(name)?.parent
  }
  return false
}

function compileList(list: string, rules: readonly Rule[]): CompiledRule[] {
  return rules.map((rule, index) => ({
    path: `rules.${list}[${index}]`,
    from: matcher(rule.from),
    to: matcher(rule.to),
    reason: rule.reason,
  }))
}

function matcher(who: Who): Matcher {
  if (who.includes(EVERYONE)) return () => true
  const names = new Set(who.map(foldName))
  return (name) => names.has(foldName(name))
}
