import { findParty, type Rules } from './compile.ts'
import { considerAction, considerSend, firstVerdict } from './consider.ts'
import type { Action, Approval, Decision, Verdict } from './rule.ts'

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
