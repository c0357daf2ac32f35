/** The pauses before retries 1 to 5 (C7). Later retries use the last one. */
const PAUSES_MS = [1000, 2000, 4000, 8000, 16_000] as const

export const DEFAULT_RETRIES = 3

/** @param failures attempts that failed so far, at least one */
export function pauseAfter(failures: number): number {
  return PAUSES_MS[Math.min(failures, PAUSES_MS.length) - 1]!
}
