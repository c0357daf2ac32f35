import type { BreakerSettings } from './settings.ts'

/**
 * Keeps a team from delegating again and again to an agent that doesn't work (ask 12). Closed: anything goes. Open:
 * nothing. After the pause, half open: one task at a time is let through to try, and its outcome decides.
 */
export interface Breaker {
  /** In a row. */
  failures: number
  openedAt: number | null
  /** When the last task was let through to try. */
  triedAt: number | null
}

export const CLOSED: Breaker = { failures: 0, openedAt: null, triedAt: null }

export type BreakerState = 'closed' | 'open' | 'half_open'
export type Outcome = 'success' | 'failure' | 'trial'

export function breakerState(breaker: Breaker, now: number, settings: BreakerSettings): BreakerState {
  if (breaker.openedAt === null) return 'closed'
  return now < breaker.openedAt + settings.pauseMs ? 'open' : 'half_open'
}

/** When the next task may be let through; `now` if at once. */
export function allowedAt(breaker: Breaker, now: number, settings: BreakerSettings): number {
  if (breaker.openedAt === null) return now
  // A trial whose outcome never came (cancelled, taken over) must not keep the breaker open for ever.
  const since = Math.max(breaker.openedAt, breaker.triedAt ?? 0)
  return Math.max(now, since + settings.pauseMs)
}

export function recordOutcome(
  breaker: Breaker,
  outcome: Outcome,
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
