/** People's brakes on the team: a label, a topic, and too many failures in a row. */

/** On an issue or a pull request; as a topic, on the whole repository. Whatever its case. */
export const PAUSE = 'AI-PAUSE'

export function isPaused(labels: readonly string[], topics: readonly string[]): boolean {
  return [...labels, ...topics].some((word) => word.trim().toLowerCase() === PAUSE.toLowerCase())
}

/** More than this many in a row, and an agent gets nothing until a person lets it go on. */
export const MOST_FAILURES = 5

export interface Standing {
  readonly failures: number
  readonly halted: boolean
}

export const CLEAN: Standing = { failures: 0, halted: false }

/** A success wipes the slate; it does not lift a halt, for only a person does. */
export function afterOutcome(before: Standing, outcome: 'success' | 'failure'): Standing {
  if (outcome === 'success') return { failures: 0, halted: before.halted }
  const failures = before.failures + 1
  return { failures, halted: before.halted || failures > MOST_FAILURES }
}
