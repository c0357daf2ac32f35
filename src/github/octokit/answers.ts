import { type Answer, classify, type FailedCall, type GitHubFailure } from '../core/failure.ts'
import type { Performed } from '../port.ts'

/** What comes back from calls, in our words. */

export interface Written {
  body?: string | null
  html_url?: string
  user?: { login?: string } | null
}

export function ownAmong(written: readonly Written[], text: string, by: string): string | undefined {
  const own = written.find(({ body, user }) => user?.login === by && body?.includes(text))
  return own === undefined ? undefined : (own.html_url ?? '')
}

export async function done(calling: Promise<Answer<unknown>>): Promise<Answer<Performed>> {
  const answer = await calling
  return answer.ok ? { ok: true, value: performed(answer.value) } : answer
}

export function performed(data: unknown): Performed {
  const { html_url, number } = (data ?? {}) as { html_url?: unknown; number?: unknown }
  return {
    ...(typeof html_url === 'string' ? { url: html_url } : {}),
    ...(typeof number === 'number' ? { number } : {}),
  }
}

export function notOurs(what: string): Answer<never> {
  return { ok: false, failure: { kind: 'invalid', message: `There is ${what} already, and it is not ours` } }
}

export function gone(message: string): Answer<never> {
  return { ok: false, failure: { kind: 'gone', message } }
}

interface HttpError {
  status?: number
  response?: { headers?: FailedCall['headers'] }
  request?: { url?: string }
}

/** Where an App asks for what it needs to ask anything else. */
const CREDENTIALS = /\/(?:installation|access_tokens)$/

/** Whether it was the App itself that asked, for its own credentials. */
export function isOfCredentials(error: unknown): boolean {
  return CREDENTIALS.test((error as HttpError).request?.url ?? '')
}

export function failureOf(error: unknown, now: number): GitHubFailure {
  const { name, message } = error instanceof Error ? error : { name: '', message: String(error) }
  const { status, response } = error as HttpError
  if (response !== undefined && typeof status === 'number') {
    const failure = classify({ status, message, headers: response.headers ?? {} }, now)
    // Not what was asked about is gone, but what we ask with.
    return failure.kind === 'gone' && isOfCredentials(error)
      ? { kind: 'unauthenticated', status, message: 'The GitHub App is not installed there (any more)' }
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
      message: `The credentials for GitHub cannot be used: ${message.slice(0, 200)}`,
    }
  return { kind: 'unavailable', message: `GitHub cannot be reached: ${message.slice(0, 200)}` }
}
