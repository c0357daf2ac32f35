/**
 * How many problems are listed: many at once, then a few per stretch of text. A flood of broken tags must not become a
 * flood of answers to the agent that wrote them.
 */
const AT_ONCE = 1000
const BYTES_PER_PROBLEM = 1024

export interface Allowance {
  /** Whether a problem at this offset is listed. */
  take(offset: number): boolean
}

export function openAllowance(): Allowance {
  let left = AT_ONCE
  let last = 0
  return {
    take(offset) {
      if (offset > last) {
        left = Math.min(AT_ONCE, left + (offset - last) / BYTES_PER_PROBLEM)
        last = offset
      }
      if (left < 1) return false
      left--
      return true
    },
  }
}
