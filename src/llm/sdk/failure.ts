import { APICallError, type FinishReason, LoadAPIKeyError, NoSuchModelError } from 'ai'
import type { Clock } from '../../base/clock.ts'
import type { FailureCode, ModelFailure, ModelSettings } from '../llm.ts'

/** A failure, and whether the same request may succeed a moment later. */
interface ClassifiedFailure {
  readonly failure: ModelFailure
  readonly isTransient: boolean
}

const HINTS: Record<FailureCode, string> = {
  unavailable: 'Check that the address is right and the provider is up. Orchub retries automatically.',
  refused: 'Check the prompt, or use another model.',
  garbage: 'Use a model that supports structured output.',
  timeout: 'Raise "timeout" of the model in orc.yaml, or use a faster model.',
  no_key: 'Put a valid key into the variable, then restart the service.',
  unknown_model: 'Check "model" and "base_url" of the entry under "models" in orc.yaml.',
  too_long: 'Lower with.history_tokens of the agent, or set "context_window" of the model in orc.yaml.',
  aborted: 'No action needed.',
}

export function failure(code: FailureCode, message: string, more: Partial<ModelFailure> = {}): ModelFailure {
  return { ok: false, code, message, hint: HINTS[code], ...more }
}

const TOO_LONG =
  /context.{0,20}(?:length|window|limit|size)|maximum context|prompt is too long|too many tokens|input token count|exceed\w* .{0,30}tokens/i

/** Uses only status and message: the error itself holds the whole request. */
export function classifyError(error: unknown, settings: ModelSettings, now: number): ClassifiedFailure {
  const { model, provider, keyEnv } = settings
  const said = `${provider} (${model})`
  if (LoadAPIKeyError.isInstance(error)) {
    return permanent(failure('no_key', `There is no key for ${said}`))
  }
  if (NoSuchModelError.isInstance(error)) {
    return permanent(failure('unknown_model', `${provider} has no model ${model}`))
  }
  if (!isProviderError(error)) {
    return transient(failure('unavailable', `${said} did not answer: ${reasonOf(error)}`))
  }
  const { statusCode: status } = error
  const message = `${said} answered ${status ?? 'with an error'}: ${firstLine(error.message)}`
  if (status === 401 || status === 403) {
    const where = keyEnv === undefined ? 'No key was sent' : `The key in ${keyEnv} was not accepted`
    const hint = keyEnv === undefined ? 'Set "key_env" to the variable that holds the key.' : HINTS.no_key
    return permanent(failure('no_key', `${where}: ${message}`, { hint }))
  }
  if (status === 404) return permanent(failure('unknown_model', message))
  if (status === 413 || (status !== 429 && isClientError(status) && TOO_LONG.test(textOf(error)))) {
    return permanent(failure('too_long', message))
  }
  if (!error.isRetryable && isClientError(status)) return permanent(failure('refused', message))
  const retryAfterMs = retryAfter(error, now)
  return transient(failure('unavailable', message, retryAfterMs === undefined ? {} : { retryAfterMs }))
}

/** The failure behind a finished answer, if the provider refused. */
export function refusalOf(finish: FinishReason, settings: ModelSettings): ModelFailure | undefined {
  if (finish !== 'content-filter') return undefined
  return failure('refused', `${settings.provider} (${settings.model}) refused to answer`)
}

const transient = (failure: ModelFailure): ClassifiedFailure => ({ failure, isTransient: true })
const permanent = (failure: ModelFailure): ClassifiedFailure => ({ failure, isTransient: false })

interface ProviderError {
  readonly message: string
  readonly statusCode?: number
  readonly isRetryable: boolean
  readonly responseBody?: string
  readonly responseHeaders?: Readonly<Record<string, string>>
}

/** The library has two classes for errors before and during a stream, and doesn't export one of them. */
function isProviderError(error: unknown): error is ProviderError {
  if (APICallError.isInstance(error)) return true
  return typeof (error as { isRetryable?: unknown } | null)?.isRetryable === 'boolean'
}

const isClientError = (status: number | undefined) => status !== undefined && status >= 400 && status < 500

const textOf = ({ message, responseBody = '' }: ProviderError) =>
  `${message}\n${responseBody.slice(0, 10_000)}`

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) {
    const { message } = (error ?? {}) as { message?: unknown }
    return firstLine(typeof message === 'string' ? message : String(error))
  }
  // Node gives the reason in the cause only: "fetch failed" alone isn't helpful.
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : ''
  return firstLine(`${error.message}${cause}`)
}

const firstLine = (text: string) => text.trim().split('\n', 1)[0]!.slice(0, 500)

/** Seconds or a date; some providers also send milliseconds in their own header. */
function retryAfter({ responseHeaders = {} }: ProviderError, now: number): number | undefined {
  const exact = Number.parseFloat(responseHeaders['retry-after-ms'] ?? '')
  if (exact >= 0) return exact
  const said = responseHeaders['retry-after']
  if (said === undefined) return undefined
  const ms = /^\s*[\d.]+\s*$/.test(said) ? Number.parseFloat(said) * 1000 : Date.parse(said) - now
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined
}

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
