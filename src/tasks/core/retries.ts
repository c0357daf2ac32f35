import { DEFAULT_RETRIES, pauseAfter } from '../../base/backoff.ts'

/** The first try is not a retry: three retries are four attempts. */
export const DEFAULT_MAX_ATTEMPTS = 1 + DEFAULT_RETRIES

export interface Failure {
  attempt: number
  maxAttempts: number
  recoverable: boolean
}

export type AfterFailure = { retry: true; delayMs: number } | { retry: false; why: string }

/** What follows on a failed attempt. Where nothing is retried, a person is told (C7). */
export function afterFailure({ attempt, maxAttempts, recoverable }: Failure): AfterFailure {
  if (!recoverable) return { retry: false, why: 'trying again would not help' }
  if (attempt >= maxAttempts) {
    return { retry: false, why: attempt === 1 ? 'it is not retried' : `${attempt} attempts failed` }
  }
  return { retry: true, delayMs: pauseAfter(attempt) }
}
