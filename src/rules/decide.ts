import { findParty, type Rules } from './compile.ts'
import { considerAction, considerSend, firstVerdict } from './consider.ts'
import type { Action, Approval, Decision, Verdict } from './rule.ts'

/** Keeps the memo of a team of thousands from becoming the largest thing in memory; refilling it is cheap. */
const MEMO_LIMIT = 1_000_000

/** May `from` write to `to` (S1.12, C24)? Names in any case; `operator` is a party to this, too. */
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

/** May `agent` do this (S1.19, C2, C14, C15)? `target` is the agent it is done to, where there is one. */
export function decideAction(rules: Rules, agent: string, action: Action, target?: string): Decision {
  return firstVerdict(considerAction(rules, agent, action, target))
}

const WEIGHT: Record<Verdict, number> = { deny: 2, ask: 1, allow: 0 }

/**
 * Where several must agree, as for an urgent message: any denial denies, any question asks. Of two questions the one
 * that wants more approvals counts, then the one that names approvers. The earlier wins a tie.
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

/** Whose messages show in the log that `agent` reads: everyone's, or those of the agents named, itself among them. */
export function readableLogs(rules: Rules, agent: string): 'all' | readonly string[] {
  const decision = decideAction(rules, agent, 'read_log')
  if (decision.verdict === 'allow') return 'all'
  const self = findParty(rules, agent)
  if (self === undefined) return []
  const names = rules.policy.agents.map(({ name }) => name)
  return names.filter((name) => decideAction(rules, self.name, 'read_log', name).verdict === 'allow')
}
