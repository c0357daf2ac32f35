import type { Clock } from '../../base/clock.ts'
import type { ModelFailure } from '../llm.ts'
import type { ModelSettings } from '../model-settings.ts'
import { failure, type Trouble } from './failure.ts'

export interface Attempt {
  readonly signal: AbortSignal
  /** The model gave a sign of life: its time begins anew. */
  alive(): void
  /** Something of the answer was passed on: another attempt would say it twice. */
  isBegun: boolean
}

interface Attempts {
  readonly settings: ModelSettings
  readonly clock: Clock
  readonly signal: AbortSignal | undefined
  /** What an error means. */
  explain(error: unknown): Trouble
}

/** After 1, 2, 4 s (C7). */
const FIRST_WAIT_MS = 1000
/** Whoever wants to be left alone for longer is left alone: the caller is told for how long. */
const LONGEST_WAIT_MS = 60_000

/** Runs a request until it succeeds, fails for good, or was tried often enough. */
export async function attempt<T>(
  { settings, clock, signal, explain }: Attempts,
  once: (attempt: Attempt) => Promise<T>,
): Promise<T | ModelFailure> {
  for (let number = 0; ; number += 1) {
    if (signal?.aborted) return aborted()
    const watch = watchOver(settings.timeoutMs, clock, signal)
    const current: Attempt = { signal: watch.signal, alive: watch.alive, isBegun: false }
    let trouble: Trouble
    try {
      return await once(current)
    } catch (error) {
      if (signal?.aborted) return aborted()
      trouble = watch.isLate() ? { failure: late(settings), isPassing: true } : explain(error)
    } finally {
      watch.end()
    }
    if (!trouble.isPassing || current.isBegun || number >= settings.retries) return trouble.failure
    const wait = trouble.failure.retryAfterMs ?? FIRST_WAIT_MS * 2 ** number
    if (wait > LONGEST_WAIT_MS) return trouble.failure
    await pause(wait, clock, signal)
  }
}

const aborted = () => failure('aborted', 'The call was given up')

function late({ provider, model, timeoutMs }: ModelSettings): ModelFailure {
  return failure('timeout', `${provider} (${model}) gave no sign for ${timeoutMs / 1000} s`)
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
