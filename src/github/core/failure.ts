/** Why a call to GitHub came to nothing, and whether it is worth another try. */
export interface GitHubFailure {
  readonly kind: 'gone' | 'forbidden' | 'unauthenticated' | 'invalid' | 'limited' | 'unavailable' | 'timeout'
  readonly status?: number
  readonly message: string
  /** How long GitHub wants to be left alone. */
  readonly retryAfterMs?: number
}

export type Answer<Value> = { ok: true; value: Value } | { ok: false; failure: GitHubFailure }

export interface FailedCall {
  readonly status: number
  readonly message: string
  readonly headers: Readonly<Record<string, string | number | undefined>>
}

const A_MINUTE = 60_000
/** GitHub counts by the hour. Whatever says more, be it something on the way, is asked again after that. */
const AN_HOUR = 3600_000

/**
 * GitHub says 403 or 429 for its limits, primary (none of them left, with the time when there are) and secondary
 * (Retry-After, or a minute), and 403 for what is forbidden as well.
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

const PASSING: ReadonlySet<GitHubFailure['kind']> = new Set(['limited', 'unavailable', 'timeout'])

/** The same call may work later. */
export function isRecoverable({ kind }: GitHubFailure): boolean {
  return PASSING.has(kind)
}
