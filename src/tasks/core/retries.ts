import { DEFAULT_RETRIES, pauseAfter } from '../../base/backoff.ts'

/** Three retries make four attempts. */
export const DEFAULT_MAX_ATTEMPTS = 1 + DEFAULT_RETRIES

interface AttemptFailure {
  attempt: number
  maxAttempts: number
  recoverable: boolean
}

type RetryDecision = { retry: true; delayMs: number } | { retry: false; why: string }

/** Decides whether a failed attempt is retried, and after which pause. Without a retry, the caller escalates to a person (C7). */
export function afterFailure({ attempt, maxAttempts, recoverable }: AttemptFailure): RetryDecision {
  if (!recoverable) return { retry: false, why: 'retrying would not help' }
  if (attempt >= maxAttempts) {
    return { retry: false, why: attempt === 1 ? 'the task has no retries' : `${attempt} attempts failed` }
  }
  return { retry: true, delayMs: pauseAfter(attempt) }
}
