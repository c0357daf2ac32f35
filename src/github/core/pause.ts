/** The ways to stop the team: a label, a topic, and too many failures in a row. */

/** A label on a thread, or a topic of the repository, in any case. */
const PAUSE = 'AI-PAUSE'

export function isPaused(labels: readonly string[], topics: readonly string[]): boolean {
  return [...labels, ...topics].some((word) => word.trim().toLowerCase() === PAUSE.toLowerCase())
}

/** After more failures in a row than this, an agent gets no work until a person resumes it. */
const MAX_FAILURES = 5

interface FailureStreak {
  readonly failures: number
  readonly halted: boolean
}

export const NO_FAILURES: FailureStreak = { failures: 0, halted: false }

/** A success resets the count but not the halt: only a person resumes a halted agent. */
export function afterOutcome(before: FailureStreak, outcome: 'success' | 'failure'): FailureStreak {
  if (outcome === 'success') return { failures: 0, halted: before.halted }
  const failures = before.failures + 1
  return { failures, halted: before.halted || failures > MAX_FAILURES }
}
