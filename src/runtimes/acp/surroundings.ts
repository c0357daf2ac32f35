import { type Clock, sleep } from '../../model/clock.ts'

export interface Limits {
  /** For each answer that opening a session takes. */
  readonly answerMs: number
  /** For a first sign of a turn, before it counts as uncertain. Models may think long before they say a word. */
  readonly signMs: number
  /** For the end of a turn that was cancelled. */
  readonly cancelMs: number
  /** For processes to end by themselves before they are killed. */
  readonly graceMs: number
  /** A replay is over when nothing of it came for that long: some agents answer session/load before they are done. */
  readonly quietMs: number
  /** After a turn that failed nothing is tried for that long, doubled with each failure in a row. */
  readonly failureMs: number
  readonly lineBytes: number
}

export const LIMITS: Limits = {
  answerMs: 60_000,
  signMs: 120_000,
  cancelMs: 10_000,
  graceMs: 3_000,
  quietMs: 300,
  failureMs: 5_000,
  lineBytes: 16 << 20,
}

const MINUTE = 60_000

/** Resolves when the minute of that time is over, with a second for clocks that differ. */
export async function minuteIsOver(clock: Clock, time: number): Promise<void> {
  const left = (Math.floor(time / MINUTE) + 1) * MINUTE + 1000 - clock.now()
  // A time to come would be a clock that was set back: not worth waiting for.
  if (left > 0 && left <= MINUTE + 1000) await sleep(clock, left)
}

export const FAILURE_MS_MAX = 300_000

/** Rejects when the answer does not come in time. */
export async function answered<T>(clock: Clock, ms: number, answer: Promise<T>, what: string): Promise<T> {
  const late = Promise.withResolvers<never>()
  const cancel = clock.after(ms, () => late.reject(new Error(`no answer to ${what} within ${ms / 1000} s`)))
  try {
    return await Promise.race([answer, late.promise])
  } finally {
    cancel()
    answer.catch(() => {})
  }
}
