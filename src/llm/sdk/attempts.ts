import type { Clock } from '../../base/clock.ts'
import type { ModelFailure } from '../llm.ts'
import type { ModelSettings } from '../model-settings.ts'
import { type ClassifiedFailure, failure } from './failure.ts'

export interface Attempt {
  readonly signal: AbortSignal
  /** Restarts the timeout after a sign of life from the model. */
  alive(): void
  /** A part of the answer was passed on: a retry would repeat it. */
  isBegun: boolean
}

interface AttemptOptions {
  readonly settings: ModelSettings
  readonly clock: Clock
  readonly signal: AbortSignal | undefined
  explain(error: unknown): ClassifiedFailure
}

/** Retries after 1, 2 and 4 s (C7). */
const FIRST_WAIT_MS = 1000
/** If a provider asks for a longer pause, give up and report the pause to the caller. */
const LONGEST_WAIT_MS = 60_000

/** Retries a request until it succeeds, fails permanently or runs out of retries. */
export async function attempt<T>(
  { settings, clock, signal, explain }: AttemptOptions,
  once: (attempt: Attempt) => Promise<T>,
): Promise<T | ModelFailure> {
  for (let number = 0; ; number += 1) {
    if (signal?.aborted) return aborted()
    const watch = watchOver(settings.timeoutMs, clock, signal)
    const current: Attempt = { signal: watch.signal, alive: watch.alive, isBegun: false }
    let failed: ClassifiedFailure
    try {
      return await once(current)
    } catch (error) {
      if (signal?.aborted) return aborted()
      failed = watch.isLate() ? { failure: late(settings), isTransient: true } : explain(error)
    } finally {
      watch.end()
    }
    if (!failed.isTransient || current.isBegun || number >= settings.retries) return failed.failure
    const wait = failed.failure.retryAfterMs ?? FIRST_WAIT_MS * 2 ** number
    if (wait > LONGEST_WAIT_MS) return failed.failure
    await pause(wait, clock, signal)
  }
}

const aborted = () => failure('aborted', 'The call was aborted')

function late({ provider, model, timeoutMs }: ModelSettings): ModelFailure {
  return failure('timeout', `${provider} (${model}) did not respond for ${timeoutMs / 1000} s`)
}

function watchOver(ms: number, clock: Clock, signal: AbortSignal | undefined) {
  const timeout = new AbortController()
  const start = () => clock.after(ms, () => timeout.abort(new Error('timed out')))
  let cancel = start()
  return {
    signal: signal === undefined ? timeout.signal : AbortSignal.any([signal, timeout.signal]),
    isLate: () => timeout.signal.aborted,
    alive() {
      cancel()
      cancel = start()
    },
    end: () => cancel(),
  }
}

function pause(ms: number, clock: Clock, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      cancel()
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const cancel = clock.after(ms, done)
    signal?.addEventListener('abort', done)
  })
}
