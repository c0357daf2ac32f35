import type { RunHead, RunOutcome } from '../run.ts'

/** How a run ended. One that ran out of time failed; what it cancelled does not make that a person's wish. */
export function outcomeOf({ settled, cancelled }: Pick<RunHead, 'settled' | 'cancelled'>): RunOutcome {
  if (cancelled !== null && settled.cancelled > 0) return cancelled.timedOut ? 'failed' : 'cancelled'
  if (settled.failed > 0) return 'failed'
  return settled.skipped > 0 ? 'partial' : 'completed'
}

/** What `orc run` exits with. */
export const EXIT_CODE: Record<RunOutcome, number> = { completed: 0, failed: 9, partial: 10, cancelled: 11 }
