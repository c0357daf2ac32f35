/**
 * A circuit breaker per agent stops delegations to an agent that keeps failing (ask 12). Closed: every task passes.
 * Open: none does. Half open, after the pause: one trial task at a time passes, and its outcome closes or reopens it.
 */
export interface Breaker {
  /** Consecutive failures. */
  failures: number
  openedAt: number | null
  /** When the last trial task passed. */
  triedAt: number | null
}

export interface BreakerSettings {
  /** Consecutive failures that open the circuit. */
  failures: number
  pauseMs: number
}

export const CLOSED: Breaker = { failures: 0, openedAt: null, triedAt: null }

type BreakerState = 'closed' | 'open' | 'half_open'
export type WorkOutcome = 'success' | 'failure' | 'trial'

export function breakerState(breaker: Breaker, now: number, settings: BreakerSettings): BreakerState {
  if (breaker.openedAt === null) return 'closed'
  return now < breaker.openedAt + settings.pauseMs ? 'open' : 'half_open'
}

/** When the next task may pass; `now` if immediately. */
export function allowedAt(breaker: Breaker, now: number, settings: BreakerSettings): number {
  if (breaker.openedAt === null) return now
  // A trial without an outcome (cancelled, taken over) must not keep the breaker open forever.
  const since = Math.max(breaker.openedAt, breaker.triedAt ?? 0)
  return Math.max(now, since + settings.pauseMs)
}

export function recordOutcome(
  breaker: Breaker,
  outcome: WorkOutcome,
  now: number,
  settings: BreakerSettings,
): Breaker {
  if (outcome === 'success') return CLOSED
  if (outcome === 'trial') return breaker.openedAt === null ? breaker : { ...breaker, triedAt: now }
  const failures = breaker.failures + 1
  const isTrial = breakerState(breaker, now, settings) === 'half_open'
  if (!isTrial && (breaker.openedAt !== null || failures < settings.failures)) return { ...breaker, failures }
  return { failures, openedAt: now, triedAt: null }
}
