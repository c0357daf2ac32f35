import { type CompiledRule, findParty, isOperator, oversees, type Party, type Rules } from './compile.ts'
import { ACTIONS, type Action, type Approval, type Decision, type Preset, type Verdict } from './rule.ts'

/** Bounds the memory of the memo in a team of thousands; refilling it is cheap. */
const MEMO_LIMIT = 1_000_000

/** Decides whether `from` may write to `to` (S1.12, C24). Names in any case, `operator` included. */
export function decideSend(rules: Rules, from: string, to: string): Decision {
  const sender = findParty(rules, from)
  const recipient = findParty(rules, to)
  if (sender === undefined || recipient === undefined) return firstVerdict(considerSend(rules, from, to))
  const pair = sender.index * rules.policy.agents.length + recipient.index
  const known = rules.memo.get(pair)
  if (known !== undefined) return known
  const decision = firstVerdict(considerSend(rules, from, to))
  if (rules.memo.size >= MEMO_LIMIT) rules.memo.clear()
  rules.memo.set(pair, decision)
  return decision
}

/** Decides whether `agent` may perform the action (S1.19, C2, C14, C15), on `target` if the action has one. */
export function decideAction(rules: Rules, agent: string, action: Action, target?: string): Decision {
  return firstVerdict(considerAction(rules, agent, action, target))
}

const WEIGHT: Record<Verdict, number> = { deny: 2, ask: 1, allow: 0 }

/**
 * Combines decisions that must all agree, as for an urgent message: any deny denies, else any ask asks. Of two asks, the one
 * that needs more approvals wins, then the one that names approvers, then the earlier one.
 */
export function strictest(first: Decision, ...others: Decision[]): Decision {
  return others.reduce((a, b) => (isStricter(b, a) ? b : a), first)
}

function isStricter(one: Decision, other: Decision): boolean {
  if (one.verdict !== other.verdict) return WEIGHT[one.verdict] > WEIGHT[other.verdict]
  return one.verdict === 'ask' && wantsMore(one.approval, other.approval)
}

export function wantsMore(one: Approval | undefined, other: Approval | undefined): boolean {
  const more = (one?.quorum ?? 1) - (other?.quorum ?? 1)
  return more === 0 ? one?.approvers !== undefined && other?.approvers === undefined : more > 0
}

/** The agents whose messages `agent` may read in the log, itself included. */
export function readableLogs(rules: Rules, agent: string): 'all' | readonly string[] {
  const decision = decideAction(rules, agent, 'read_log')
  if (decision.verdict === 'allow') return 'all'
  const self = findParty(rules, agent)
  if (self === undefined) return []
  const names = rules.policy.agents.map(({ name }) => name)
  return names.filter((name) => decideAction(rules, self.name, 'read_log', name).verdict === 'allow')
}

/** A rule that was considered. The first step with a verdict decides. */
interface RuleStep {
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
  const { preset, hub = '' } = rules.policy.rules
  yield at(rules, 'rules.preset', PRESET[preset](sender, recipient, findParty(rules, hub)?.name))
}

/** All rules about an action: the agent's permission, the permission of all agents, then the default (S1.19). */
function* considerAction(rules: Rules, agent: string, action: Action, target?: string): Generator<RuleStep> {
  const { byDefault, summary } = ACTIONS[action]
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
  const reason = byDefault === 'deny' ? notPermitted(party, action) : `every agent may ${summary}`
  yield { rule: `built-in: ${action}`, verdict: byDefault, reason }
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

function itsEdges(from: Party): string {
  return from.parent === undefined ? 'its own children' : `its parent, ${from.parent}, and its own children`
}

const PERMISSION_REASON: Record<Verdict, (party: Party, action: Action) => string> = {
  allow: (party, action) => `${party.name} may ${ACTIONS[action].summary}`,
  ask: (party, action) => `${party.name} needs a person's approval to ${ACTIONS[action].summary}`,
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
  const reason = `there is no agent ${JSON.stringify(name.slice(0, 64))}; the agents are ${shown}${rest}`
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

function isDecision(step: RuleStep): step is Decision {
  return step.verdict !== undefined
}

export interface Explanation {
  readonly decision: Decision
  /** The rules considered, in order, up to the deciding one. */
  readonly steps: readonly RuleStep[]
}

/** Ways of sending, for which the recipient must be allowed too. */
const SENDS: ReadonlySet<Action> = new Set(['urgent', 'broadcast'])

/**
 * Explains whether `from` may write to `to`, or perform `action` on it, for `orc rules explain FROM TO [ACTION]`. Uses the
 * same steps as the decisions, so the two can't disagree.
 */
export function explain(rules: Rules, from: string, to: string, action?: Action): Explanation {
  if (action === undefined) return conclude([...untilDecided(considerSend(rules, from, to))])
  const permission = [...untilDecided(considerAction(rules, from, action, to))]
  if (!SENDS.has(action)) return conclude(permission)
  const send = [...untilDecided(considerSend(rules, from, to))]
  return {
    decision: strictest(firstVerdict(send), firstVerdict(permission)),
    steps: [...send, ...permission],
  }
}

function conclude(steps: readonly RuleStep[]): Explanation {
  return { decision: firstVerdict(steps), steps }
}

function* untilDecided(steps: Iterable<RuleStep>): Generator<RuleStep> {
  for (const step of steps) {
    yield step
    if (isDecision(step)) return
  }
}
