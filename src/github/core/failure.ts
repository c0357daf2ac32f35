import type { Result } from '../../base/result.ts'

/** Why a call to GitHub failed. */
export interface GitHubFailure {
  readonly kind: 'gone' | 'forbidden' | 'unauthenticated' | 'invalid' | 'limited' | 'unavailable' | 'timeout'
  readonly status?: number
  readonly message: string
  /** How long GitHub asks us to wait. */
  readonly retryAfterMs?: number
}

export type GitHubResult<Value> = Result<Value, GitHubFailure>

export interface FailedCall {
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
export function classify({ status, message, headers }: FailedCall, now: number): GitHubFailure {
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

const RECOVERABLE: ReadonlySet<GitHubFailure['kind']> = new Set(['limited', 'unavailable', 'timeout'])

/** Whether the same call may succeed later. */
export function isRecoverable({ kind }: GitHubFailure): boolean {
  return RECOVERABLE.has(kind)
}
