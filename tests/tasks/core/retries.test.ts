import { describe, expect, it } from 'vitest'
import { afterFailure, DEFAULT_MAX_ATTEMPTS } from '../../../src/tasks/core/attempts.ts'

const pauses = (maxAttempts: number) => {
  const found: number[] = []
  for (let attempt = 1; ; attempt++) {
    const after = afterFailure({ attempt, maxAttempts, recoverable: true })
    if (!after.retry) return found
    found.push(after.delayMs)
  }
}

describe('retries', () => {
  it('happen three times by default, after 1, 2 and 4 s (C7)', () => {
    expect(pauses(DEFAULT_MAX_ATTEMPTS)).toEqual([1000, 2000, 4000])
  })

  it('continue after 8 and 16 s if raised to five (C7)', () => {
    expect(pauses(6)).toEqual([1000, 2000, 4000, 8000, 16_000])
  })

  it('wait no longer than 16 s however many there are', () => {
    expect(pauses(9).slice(4)).toEqual([16_000, 16_000, 16_000, 16_000])
  })

  it('do not follow an unrecoverable failure (C7)', () => {
    expect(afterFailure({ attempt: 1, maxAttempts: 4, recoverable: false })).toEqual({
      retry: false,
      why: 'retrying would not help',
    })
  })
})
