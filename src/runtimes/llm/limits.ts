export interface Limits {
  /** After a call that failed nothing is tried for that long, doubled with each failure in a row. */
  readonly failureMs: number
  readonly failureMostMs: number
  /** For a turn to stop that was interrupted. */
  readonly interruptMs: number
}

export const LIMITS: Limits = { failureMs: 5_000, failureMostMs: 300_000, interruptMs: 10_000 }
