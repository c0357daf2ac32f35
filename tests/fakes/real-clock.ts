import type { Clock } from '../../src/base/clock.ts'

/** For processes, which keep to real time. */
export const REAL_CLOCK: Clock = {
  now: Date.now,
  after(ms, callback) {
    const timer = setTimeout(callback, ms)
    return () => clearTimeout(timer)
  },
}
