import { APICallError, type FinishReason, LoadAPIKeyError, NoSuchModelError } from 'ai'
import type { FailureCode, ModelFailure } from '../llm.ts'
import type { ModelSettings } from '../model-settings.ts'

/** A failure, and whether the same request may succeed a moment later. */
export interface ClassifiedFailure {
  readonly failure: ModelFailure
  readonly isTransient: boolean
}

const HINTS: Record<FailureCode, string> = {
  unavailable: 'Check that the address is right and the provider is up. Orchub retries by itself.',
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
  const message = `${said} answered ${status ?? 'with an error'}: ${messageOf(error)}`
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

const messageOf = ({ message }: ProviderError) => firstLine(message)

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
