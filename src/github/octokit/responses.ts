import type { GitHubFailure, GitHubResult } from '../port.ts'

/** A comment, review or pull request in a response. */
export interface AuthoredText {
  body?: string | null
  html_url?: string
  user?: { login?: string } | null
}

/** The URL of the text by that login that contains `text`. */
export function ownAmong(texts: readonly AuthoredText[], text: string, by: string): string | undefined {
  const own = texts.find(({ body, user }) => user?.login === by && body?.includes(text))
  return own === undefined ? undefined : (own.html_url ?? '')
}

export function ownerAndName(repository: string): { owner: string; repo: string } {
  const [owner = '', repo = ''] = repository.split('/')
  return { owner, repo }
}

/** Converts the value of a successful call. */
export async function mapped<From, To>(
  calling: Promise<GitHubResult<From>>,
  convert: (value: From) => To,
): Promise<GitHubResult<To>> {
  const answer = await calling
  return answer.ok ? { ok: true, value: convert(answer.value) } : answer
}

export function urlIn(data: unknown): string | undefined {
  const { html_url: url } = (data ?? {}) as { html_url?: unknown }
  return typeof url === 'string' ? url : undefined
}

export function notOurs(what: string): GitHubResult<never> {
  return {
    ok: false,
    error: { kind: 'invalid', message: `Somebody else has already created ${what}` },
  }
}

export function gone(message: string): GitHubResult<never> {
  return { ok: false, error: { kind: 'gone', message } }
}

interface HttpError {
  status?: number
  response?: { headers?: FailedCall['headers'] }
  request?: { url?: string }
}

/** The calls by which an App gets its credentials. */
const CREDENTIALS = /\/(?:installation|access_tokens)$/

/** Whether the App failed to get its own credentials. */
export function isCredentialError(error: unknown): boolean {
  return CREDENTIALS.test((error as HttpError).request?.url ?? '')
}

export function failureOf(error: unknown, now: number): GitHubFailure {
  const { name, message } = error instanceof Error ? error : { name: '', message: String(error) }
  const { status, response } = error as HttpError
  if (response !== undefined && typeof status === 'number') {
    const failure = classify({ status, message, headers: response.headers ?? {} }, now)
    // The installation is gone, not the thing that was requested.
    return failure.kind === 'gone' && isCredentialError(error)
      ? { kind: 'unauthenticated', status, message: 'The GitHub App is not installed there' }
      : failure
  }
  const cause = (error as { cause?: unknown }).cause
  const isLate = [name, cause instanceof Error ? cause.name : ''].some(
    (one) => one === 'TimeoutError' || one === 'AbortError',
  )
  if (isLate) return { kind: 'timeout', message: 'GitHub did not answer in time' }
  if (name !== 'HttpError')
    return {
      kind: 'unauthenticated',
      message: `Invalid GitHub credentials: ${message.slice(0, 200)}`,
    }
  return { kind: 'unavailable', message: `Cannot reach GitHub: ${message.slice(0, 200)}` }
}

interface FailedCall {
  readonly status: number
  readonly message: string
  readonly headers: Readonly<Record<string, string | number | undefined>>
}

const A_MINUTE = 60_000
/** GitHub's limits reset every hour, so a longer wait, such as one from a proxy, is cut to that. */
const AN_HOUR = 3600_000

/**
 * GitHub answers 403 or 429 to a primary limit (x-ratelimit-remaining is 0) and to a secondary limit (Retry-After, or
 * wait a minute), and 403 to a missing permission too.
 */
function classify({ status, message, headers }: FailedCall, now: number): GitHubFailure {
  const about = { status, message: message.slice(0, 300) }
  const limited = limitedFor(status, message, headers, now)
  if (limited !== undefined) return { kind: 'limited', ...about, retryAfterMs: Math.min(limited, AN_HOUR) }
  if (status === 401) return { kind: 'unauthenticated', ...about }
  if (status === 403 || status === 451) return { kind: 'forbidden', ...about }
  if (status === 404 || status === 410) return { kind: 'gone', ...about }
  if (status >= 500) return { kind: 'unavailable', ...about }
  return { kind: 'invalid', ...about }
}

function limitedFor(
  status: number,
  message: string,
  headers: FailedCall['headers'],
  now: number,
): number | undefined {
  if (status !== 403 && status !== 429) return undefined
  const after = Number(headers['retry-after'])
  if (headers['retry-after'] !== undefined && Number.isFinite(after)) return Math.max(0, after * 1000)
  if (String(headers['x-ratelimit-remaining']) === '0') {
    const reset = Number(headers['x-ratelimit-reset'])
    return Number.isFinite(reset) ? Math.max(1000, reset * 1000 - now) : A_MINUTE
  }
  if (status === 429 || /secondary rate limit|abuse detection/i.test(message)) return A_MINUTE
  return undefined
}
