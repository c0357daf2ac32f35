/** The pauses before retry 1, 2, 3 and, if there are more, 4 and 5 (C7). Later ones wait as long as the last. */
const PAUSES_MS = [1000, 2000, 4000, 8000, 16_000] as const

export const DEFAULT_RETRIES = 3

/** `failures`: how many attempts failed so far, at least one. */
export function pauseAfter(failures: number): number {
  return PAUSES_MS[Math.min(failures, PAUSES_MS.length) - 1]!
}
