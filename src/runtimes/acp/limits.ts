import { type Clock, sleep } from '../../base/clock.ts'

export interface AcpLimits {
  /** Timeout of each request while a session is opened. */
  readonly answerMs: number
  /**
   * Time until a turn without any sign of the agent counts as uncertain. Models may think long before their
   * first word.
   */
  readonly signMs: number
  /** Timeout for the end of a cancelled turn. */
  readonly cancelMs: number
  /** Time for processes to end by themselves before they are killed. */
  readonly graceMs: number
  /** A replay has ended after this much silence: some agents answer session/load before it ends. */
  readonly quietMs: number
  /** Pause after a failed turn, doubled with each failure in a row. */
  readonly failureMs: number
  readonly lineBytes: number
}

export const LIMITS: AcpLimits = {
  answerMs: 60_000,
  signMs: 120_000,
  cancelMs: 10_000,
  graceMs: 3_000,
  quietMs: 300,
  failureMs: 5_000,
  lineBytes: 16 << 20,
}

const MINUTE = 60_000

/** Resolves when the minute of that time has passed, plus a second for clock differences. */
export async function minuteIsOver(clock: Clock, time: number): Promise<void> {
  const left = (Math.floor(time / MINUTE) + 1) * MINUTE + 1000 - clock.now()
  // A future time means that the clock was set back; don't wait for it.
  if (left > 0 && left <= MINUTE + 1000) await sleep(clock, left)
}

export const FAILURE_MS_MAX = 300_000

/** Rejects if the response does not arrive in time. */
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
