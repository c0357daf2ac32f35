import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Bucket, take } from '../../src/rules/rate.ts'
import type { RatePolicy } from '../../src/rules/rule.ts'

const C18: RatePolicy = { perMinute: 30, burst: 10 }

/** The number of attempts that succeed. */
function passed(times: readonly number[], policy: RatePolicy): number {
  let bucket: Bucket | undefined
  let count = 0
  for (const now of times) {
    const taken = take(bucket, now, policy)
    bucket = taken.bucket
    if (taken.ok) count++
  }
  return count
}

describe('a token bucket (S1.20)', () => {
  it('allows a burst of 10 and says when the eleventh may pass (C18)', () => {
    const burst = Array.from({ length: 10 }, () => 5000)
    expect(passed(burst, C18)).toBe(10)
    expect(passed([...burst, 5000], C18)).toBe(10)
    let bucket: Bucket | undefined
    for (const now of burst) bucket = take(bucket, now, C18).bucket
    expect(take(bucket, 5000, C18)).toMatchObject({ ok: false, retryAfterMs: 2000 })
    expect(take(bucket, 5500, C18)).toMatchObject({ ok: false, retryAfterMs: 1500 })
    expect(take(bucket, 7000, C18).ok).toBe(true)
  })

  it('allows 30 a minute in the long run', () => {
    const everySecond = Array.from({ length: 601 }, (_, second) => second * 1000)
    expect(passed(everySecond, C18)).toBe(10 + 300)
  })

  it('saves no more than the burst over a quiet night', () => {
    expect(passed([0, ...Array.from({ length: 50 }, () => 8 * 3_600_000)], C18)).toBe(1 + 10)
  })

  it('bounds saved tokens when the policy is lowered', () => {
    const { bucket } = take(undefined, 0, { perMinute: 600, burst: 100 })
    expect(take(bucket, 0, { perMinute: 1, burst: 2 }).bucket.tokens).toBe(1)
  })

  it('neither gains tokens nor blocks when the clock is set back', () => {
    let bucket: Bucket | undefined
    for (let i = 0; i < 10; i++) bucket = take(bucket, 3_600_000, C18).bucket
    const back = take(bucket, 0, C18)
    expect(back).toMatchObject({ ok: false, retryAfterMs: 2000 })
    expect(take(back.bucket, 2000, C18).ok).toBe(true)
  })

  const policy = fc.record({
    perMinute: fc.integer({ min: 1, max: 5000 }),
    burst: fc.integer({ min: 1, max: 50 }),
  })
  const steps = fc.array(fc.integer({ min: 0, max: 5000 }), { maxLength: 300 })

  it('never allows more than burst + rate × time in any window', () => {
    fc.assert(
      fc.property(policy, steps, (limits, gaps) => {
        let bucket: Bucket | undefined
        let now = 0
        const through: number[] = []
        for (const gap of gaps) {
          now += gap
          const taken = take(bucket, now, limits)
          bucket = taken.bucket
          if (taken.ok) through.push(now)
        }
        const excess = through.flatMap((start, first) =>
          through
            .slice(first)
            .map((end, more) => more + 1 - limits.burst - ((end - start) * limits.perMinute) / 60_000),
        )
        expect(Math.max(0, ...excess)).toBeLessThan(1e-3)
      }),
    )
  })

  it('refuses until retryAfterMs has passed, and accepts then', () => {
    fc.assert(
      fc.property(policy, steps, (limits, gaps) => {
        let bucket: Bucket | undefined
        let now = 0
        for (const gap of gaps) {
          now += gap % 50
          const taken = take(bucket, now, limits)
          bucket = taken.bucket
          if (taken.ok) continue
          expect(take(bucket, now + taken.retryAfterMs, limits).ok).toBe(true)
          if (taken.retryAfterMs > 1)
            expect(take(bucket, now + taken.retryAfterMs - 1, limits).ok).toBe(false)
        }
      }),
    )
  })

  it('charges nothing for a refusal: attempts in between do not delay the next success', () => {
    fc.assert(
      fc.property(policy, fc.integer({ min: 1, max: 20 }), (limits, attempts) => {
        let bucket: Bucket | undefined
        for (let i = 0; i < limits.burst; i++) bucket = take(bucket, 0, limits).bucket
        const wait = Math.ceil(60_000 / limits.perMinute)
        for (let i = 0; i < attempts; i++)
          bucket = take(bucket, Math.floor((wait * i) / attempts), limits).bucket
        expect(take(bucket, wait, limits).ok).toBe(true)
      }),
    )
  })
})
