import { AGENT_NAME, EVERYONE, foldName, OPERATOR } from '../base/agent.ts'
import type { Decision, Permissions, Policy, Rule, Who } from './rule.ts'

/** A policy made ready for fast answers. Build a new one when orc.yaml changes; nothing in it is edited. */
export interface Rules {
  readonly policy: Policy
  /** By canonical name and by folded name; the two never clash, for names differ in more than case. */
  readonly byName: ReadonlyMap<string, Party>
  readonly forbid: readonly CompiledRule[]
  readonly ask: readonly CompiledRule[]
  readonly allow: readonly CompiledRule[]
  /** Answers given so far, by pair of agents. Unknown names never get in, so it is bounded by agents². */
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
  const canonical = new Map(policy.agents.map((agent) => [fold(agent.name), agent]))
  const byName = new Map<string, Party>()
  policy.agents.forEach((agent, index) => {
    const parent = agent.parent === undefined ? undefined : canonical.get(fold(agent.parent))
    const party: Party = {
      name: agent.name,
      index,
      parent: parent?.name,
      send: agent.send && matcher(agent.send),
      receive: agent.receive && matcher(agent.receive),
      permissions: agent.permissions,
    }
    byName.set(agent.name, party)
    byName.set(fold(agent.name), party)
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

/** The agent of that name, whatever its case (S0.10). */
export function findParty(rules: Rules, name: string): Party | undefined {
  // Only what can be a name is folded: Unicode would otherwise fold a Kelvin sign into "k".
  return rules.byName.get(name) ?? (AGENT_NAME.test(name) ? rules.byName.get(fold(name)) : undefined)
}

export function isOperator(name: string): boolean {
  return name === OPERATOR || (name.length === OPERATOR.length && fold(name) === OPERATOR)
}

/** Whether `party` is a parent of `other`, or a parent of its parent, and so on. */
export function oversees(rules: Rules, party: Party, other: Party): boolean {
  // The config refuses circles of parents; the bound keeps a hand-made policy with one from hanging the service.
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
  const names = new Set(who.map(fold))
  return (name) => names.has(fold(name))
}

const fold = foldName
