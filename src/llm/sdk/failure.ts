import { APICallError, type FinishReason, LoadAPIKeyError, NoSuchModelError } from 'ai'
import type { FailureCode, ModelFailure } from '../llm.ts'
import type { ModelSettings } from '../model-settings.ts'

/** A failure, and whether the same request may well succeed a moment later. */
export interface Trouble {
  readonly failure: ModelFailure
  readonly isPassing: boolean
}

const HINTS: Record<FailureCode, string> = {
  unavailable: 'It is tried again later. Is the address right, and does the service run?',
  refused: 'Look at what was asked of it, or take another model.',
  garbage: 'Take a model that can answer by a schema.',
  timeout: 'Raise "timeout" of the model in orc.yaml, or take a faster one.',
  no_key: 'Put a valid key into the variable and start the service again.',
  unknown_model: 'Look at "model" and "base_url" of the entry under "models" in orc.yaml.',
  too_long: 'Lower with.history_tokens of the agent, or set "context_window" of the model in orc.yaml.',
  aborted: 'Nothing is to be done.',
}

export function failure(code: FailureCode, message: string, more: Partial<ModelFailure> = {}): ModelFailure {
  return { ok: false, code, message, hint: HINTS[code], ...more }
}

const TOO_LONG =
  /context.{0,20}(?:length|window|limit|size)|maximum context|prompt is too long|too many tokens|input token count|exceed\w* .{0,30}tokens/i

/** Made of status and message alone: the error itself holds the whole request. */
export function troubleOf(error: unknown, settings: ModelSettings, now: number): Trouble {
  const { model, provider, keyEnv } = settings
  const said = `${provider} (${model})`
  if (LoadAPIKeyError.isInstance(error)) {
    return lasting(failure('no_key', `There is no key for ${said}`))
  }
  if (NoSuchModelError.isInstance(error)) {
    return lasting(failure('unknown_model', `${provider} has no model ${model}`))
  }
  if (!isProviderError(error)) {
    return passing(failure('unavailable', `${said} did not answer: ${reasonOf(error)}`))
  }
  const { statusCode: status } = error
  const message = `${said} answered ${status ?? 'with an error'}: ${messageOf(error)}`
  if (status === 401 || status === 403) {
    const where = keyEnv === undefined ? 'No key was sent' : `The key in ${keyEnv} was not accepted`
    const hint = keyEnv === undefined ? 'Name the variable that holds the key with "key_env".' : HINTS.no_key
    return lasting(failure('no_key', `${where}: ${message}`, { hint }))
  }
  if (status === 404) return lasting(failure('unknown_model', message))
  if (status === 413 || (status !== 429 && isClientError(status) && TOO_LONG.test(textOf(error)))) {
    return lasting(failure('too_long', message))
  }
  if (!error.isRetryable && isClientError(status)) return lasting(failure('refused', message))
  const retryAfterMs = retryAfter(error, now)
  return passing(failure('unavailable', message, retryAfterMs === undefined ? {} : { retryAfterMs }))
}

/** Why an answer that came is none, if it is none. */
export function refusalOf(finish: FinishReason, settings: ModelSettings): ModelFailure | undefined {
  if (finish !== 'content-filter') return undefined
  return failure('refused', `${settings.provider} (${settings.model}) refused to answer`)
}

const passing = (failure: ModelFailure): Trouble => ({ failure, isPassing: true })
const lasting = (failure: ModelFailure): Trouble => ({ failure, isPassing: false })

interface ProviderError {
  readonly message: string
  readonly statusCode?: number
  readonly isRetryable: boolean
  readonly responseBody?: string
  readonly responseHeaders?: Readonly<Record<string, string>>
}

/** Before a stream began or in the middle of it: the library has two classes for that, one of them not exported. */
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
  // Node says why only in the cause: "fetch failed" alone helps nobody.
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : ''
  return firstLine(`${error.message}${cause}`)
}

const firstLine = (text: string) => text.trim().split('\n', 1)[0]!.slice(0, 500)

/** In seconds, or a date; some say it in milliseconds in a header of their own. */
function retryAfter({ responseHeaders = {} }: ProviderError, now: number): number | undefined {
  const exact = Number.parseFloat(responseHeaders['retry-after-ms'] ?? '')
  if (exact >= 0) return exact
  const said = responseHeaders['retry-after']
  if (said === undefined) return undefined
  const ms = /^\s*[\d.]+\s*$/.test(said) ? Number.parseFloat(said) * 1000 : Date.parse(said) - now
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined
}
