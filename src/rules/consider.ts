import { type CompiledRule, findParty, isOperator, oversees, type Party, type Rules } from './compile.ts'
import { ACTIONS, type Action, type Approval, type Decision, type Preset, type Verdict } from './rule.ts'

/** A rule that was considered. The first step with a verdict decides. */
export interface RuleStep {
  readonly rule: string
  readonly line?: number
  readonly verdict?: Verdict
  readonly reason: string
  readonly approval?: Approval
}

const NAMES_SHOWN = 20

/**
 * All rules about `from` writing to `to`, in order of precedence (C24): forbid, the narrowing of the two agents, ask, allow,
 * then the preset.
 */
export function* considerSend(rules: Rules, from: string, to: string): Generator<RuleStep> {
  const sender = findParty(rules, from)
  const recipient = findParty(rules, to)
  if (sender === undefined && !isOperator(from)) return yield unknown(rules, from)
  if (recipient === undefined && !isOperator(to)) return yield unknown(rules, to)
  if (sender === undefined) return yield operatorDecides('the operator may write to every agent')
  if (recipient === undefined) return yield operatorDecides('every agent may write to the operator')
  if (sender === recipient) {
    const reason = `${sender.name} cannot send a message to itself`
    return yield { rule: 'built-in: self', verdict: 'deny', reason }
  }
  yield* listed(rules, rules.forbid, 'deny', sender, recipient)
  yield* narrowing(rules, sender, recipient)
  yield* listed(rules, rules.ask, 'ask', sender, recipient)
  yield* listed(rules, rules.allow, 'allow', sender, recipient)
  yield at(rules, 'rules.preset', presetVerdict(rules, sender, recipient))
}

/** All rules about an action: the agent's permission, the permission of all agents, then the default (S1.19). */
export function* considerAction(
  rules: Rules,
  agent: string,
  action: Action,
  target?: string,
): Generator<RuleStep> {
  const { silent, summary } = ACTIONS[action]
  if (isOperator(agent)) return yield operatorDecides(`the operator may ${summary}`)
  const party = findParty(rules, agent)
  if (party === undefined) return yield unknown(rules, agent)
  const other = target === undefined ? undefined : findParty(rules, target)
  if (other === party && CONCERNS_OTHERS.has(action)) {
    return yield { rule: 'built-in: self', verdict: 'allow', reason: `${party.name} may do this for itself` }
  }
  yield permission(
    rules,
    `agents.${party.name}.permissions.${action}`,
    party,
    action,
    party.permissions[action],
  )
  yield permission(rules, `permissions.${action}`, party, action, rules.policy.permissions[action])
  // S1.14: an agent may read the messages of its descendants.
  if (action === 'read_log' && other !== undefined && oversees(rules, party, other)) {
    const reason = `${party.name} oversees ${other.name} and may read its messages`
    return yield { rule: 'built-in: oversight', verdict: 'allow', reason }
  }
  const reason = silent === 'deny' ? notPermitted(party, action) : `every agent may ${summary}`
  yield { rule: `built-in: ${action}`, verdict: silent, reason }
}

/** C14: an agent needs no permission for these on itself. */
const CONCERNS_OTHERS: ReadonlySet<Action> = new Set([
  'read_other_mailbox',
  'update_other_status',
  'read_log',
])

const LISTED_REASON: Record<Verdict, (from: string, to: string) => string> = {
  deny: (from, to) => `${from} is forbidden to write to ${to}`,
  ask: (from, to) => `a person decides on each message from ${from} to ${to}`,
  allow: (from, to) => `${from} may write to ${to}`,
}

function* listed(rules: Rules, list: readonly CompiledRule[], verdict: Verdict, from: Party, to: Party) {
  for (const rule of list) {
    const concerned = rule.from(from.name) && rule.to(to.name)
    const reason = rule.reason ?? LISTED_REASON[verdict](from.name, to.name)
    yield at(rules, rule.path, concerned ? { verdict, reason } : { reason: 'names other agents' })
  }
}

function* narrowing(rules: Rules, from: Party, to: Party): Generator<RuleStep> {
  if (from.send !== undefined) {
    const refusal = { verdict: 'deny', reason: `${from.name} is not set up to write to ${to.name}` } as const
    yield at(rules, `agents.${from.name}.send`, from.send(to.name) ? { reason: `lists ${to.name}` } : refusal)
  }
  if (to.receive !== undefined) {
    const refusal = {
      verdict: 'deny',
      reason: `${to.name} does not accept messages from ${from.name}`,
    } as const
    yield at(
      rules,
      `agents.${to.name}.receive`,
      to.receive(from.name) ? { reason: `lists ${from.name}` } : refusal,
    )
  }
}

const PRESET: Record<Preset, (from: Party, to: Party, hub: string | undefined) => Omit<RuleStep, 'rule'>> = {
  mesh: () => ({ verdict: 'allow', reason: 'in a mesh every agent may write to every other' }),
  tree: (from, to) =>
    from.parent === to.name || to.parent === from.name
      ? { verdict: 'allow', reason: 'in a tree parent and child may write to each other' }
      : { verdict: 'deny', reason: `in this tree ${from.name} may write only to ${itsEdges(from)}` },
  hub: (from, to, hub) =>
    from.name === hub || to.name === hub
      ? { verdict: 'allow', reason: `every agent may write to and hear from the hub, ${hub}` }
      : { verdict: 'deny', reason: `messages between agents go through ${hub}; write to ${hub} instead` },
  isolated: () => ({ verdict: 'deny', reason: 'the agents of this team may not write to each other' }),
}

function presetVerdict(rules: Rules, from: Party, to: Party): Omit<RuleStep, 'rule'> {
  const { preset, hub } = rules.policy.rules
  return PRESET[preset](from, to, hub === undefined ? undefined : findParty(rules, hub)?.name)
}

function itsEdges(from: Party): string {
  return from.parent === undefined ? 'its own children' : `its parent, ${from.parent}, and its own children`
}

const PERMISSION_REASON: Record<Verdict, (party: Party, action: Action) => string> = {
  allow: (party, action) => `${party.name} may ${ACTIONS[action].summary}`,
  ask: (party, action) => `a person decides each time whether ${party.name} may ${ACTIONS[action].summary}`,
  deny: notPermitted,
}

function permission(
  rules: Rules,
  path: string,
  party: Party,
  action: Action,
  verdict: Verdict | undefined,
): RuleStep {
  if (verdict === undefined) return { rule: path, reason: 'not set' }
  return at(rules, path, { verdict, reason: PERMISSION_REASON[verdict](party, action) })
}

function notPermitted(party: Party, action: Action): string {
  return `${party.name} has no permission to ${ACTIONS[action].summary} (${action})`
}

function operatorDecides(reason: string): RuleStep {
  return { rule: 'built-in: operator', verdict: 'allow', reason }
}

function unknown(rules: Rules, name: string): RuleStep {
  const names = rules.policy.agents.map((agent) => agent.name)
  const shown = names.slice(0, NAMES_SHOWN).join(', ')
  const rest = names.length > NAMES_SHOWN ? ` and ${names.length - NAMES_SHOWN} more` : ''
  const reason = `there is no agent ${JSON.stringify(name.slice(0, 64))}; there are ${shown}${rest}`
  return { rule: 'built-in: unknown agent', verdict: 'deny', reason }
}

function at(rules: Rules, path: string, step: Omit<RuleStep, 'rule' | 'line' | 'approval'>): RuleStep {
  const line = rules.policy.lines[path]
  const approval = step.verdict === 'ask' ? rules.policy.approvals?.[path] : undefined
  return {
    rule: path,
    ...(line !== undefined && { line }),
    ...step,
    ...(approval !== undefined && { approval }),
  }
}

/** The last step always has a verdict: the preset's or the default. */
export function firstVerdict(steps: Iterable<RuleStep>): Decision {
  for (const step of steps) if (isDecision(step)) return step
  throw new Error('No step decided')
}

export function isDecision(step: RuleStep): step is Decision {
  return step.verdict !== undefined
}
