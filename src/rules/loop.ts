import type { PingPongPolicy } from './rule.ts'

/**
 * How many replies led to a message: 0 for one that answers nothing, else one more than what it answers.
 * A chain over `limits.hops` is parked for a person instead of burning money.
 */
export function nextHop(cause: { readonly hop: number } | undefined): number {
  return cause === undefined ? 0 : cause.hop + 1
}

/** One unordered pair's recent history. Plain data, never longer than the policy's number of turns. */
export interface PingPong {
  /** Who spoke last. */
  readonly from: string
  /** When the direction changed, oldest first. */
  readonly changes: readonly number[]
}

interface Observed {
  readonly state: PingPong
  readonly verdict: 'ok' | 'park'
  /** Turns taken within the window, this one included. */
  readonly turns: number
}

/**
 * Sees one message of a pair go by. A turn is a run of messages in one direction, so a stream A→B→B→B is one
 * turn however long it is; strict alternation is parked at the first message past `policy.turns`.
 * `from` is the canonical name. After a person lets the pair go on, start again from `undefined`.
 */
export function observe(
  state: PingPong | undefined,
  from: string,
  now: number,
  policy: PingPongPolicy,
): Observed {
  if (state === undefined) return { state: { from, changes: [] }, verdict: 'ok', turns: 1 }
  // Changes in the future mean the clock was set back: forgetting them beats a window that won't close for a day.
  const recent = state.changes.filter((change) => change <= now && change > now - policy.withinMs)
  if (from !== state.from) recent.push(now)
  // `turns` changes are turns + 1 runs: enough to park, so nothing older is worth keeping.
  const changes = recent.slice(-policy.turns)
  const turns = changes.length + 1
  return { state: { from, changes }, verdict: turns > policy.turns ? 'park' : 'ok', turns }
}
