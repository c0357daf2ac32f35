import type { PingPongPolicy } from './rule.ts'

/**
 * Length of the chain of replies that led to a message: 0 for a message that isn't a reply. A chain longer than
 * `limits.hops` is parked for a person.
 */
export function nextHop(cause: { readonly hop: number } | undefined): number {
  return cause === undefined ? 0 : cause.hop + 1
}

/** The key of a conversation: the same for both directions. */
export function pairOf(a: string, b: string): string {
  return a < b ? `${a} ${b}` : `${b} ${a}`
}

/** Recent history of an unordered pair of agents. Plain data, at most as long as the policy's number of turns. */
export interface PingPong {
  /** The last sender. */
  readonly from: string
  /** Times when the direction changed, oldest first. */
  readonly changes: readonly number[]
}

interface ObservedMessage {
  readonly state: PingPong
  readonly verdict: 'ok' | 'park'
  /** Turns taken within the window, this one included. */
  readonly turns: number
}

/**
 * Records one message of a pair. A turn is a run of messages in one direction, so a stream of messages from A to B is one
 * turn; strict alternation is parked at the first message beyond `policy.turns`. `from` is the canonical name. After a
 * person releases the pair, start again from `undefined`.
 */
export function observe(
  state: PingPong | undefined,
  from: string,
  now: number,
  policy: PingPongPolicy,
): ObservedMessage {
  if (state === undefined) return { state: { from, changes: [] }, verdict: 'ok', turns: 1 }
  // Changes in the future mean that the clock was set back: drop them, or the window might not close for a day.
  const recent = state.changes.filter((change) => change <= now && change > now - policy.withinMs)
  if (from !== state.from) recent.push(now)
  // `turns` changes make turns + 1 runs, enough to park: older ones aren't needed.
  const changes = recent.slice(-policy.turns)
  const turns = changes.length + 1
  return { state: { from, changes }, verdict: turns > policy.turns ? 'park' : 'ok', turns }
}
