/** A longer run of backticks delimits nothing. */
export const LONGEST_RUN = 31

/**
 * Runs of backticks that still lack their other half, in order. A run that finds its equal makes code of all that lies
 * between, so the runs since are forgotten with it. No two of a length are pending, which makes them a set of bits.
 */
export interface PendingRuns {
  readonly isEmpty: boolean
  meet(length: number): void
  has(length: number): boolean
  /** The largest of the numbers that are given for each length, among the lengths that are pending. */
  largestOf(numbers: Float64Array): number
  clear(): void
}

export function openPendingRuns(): PendingRuns {
  const lengths = new Uint8Array(LONGEST_RUN + 1)
  let count = 0
  let bits = 0

  const runs = {
    isEmpty: true,
    meet(length: number) {
      if (length > LONGEST_RUN) return
      if (runs.has(length)) {
        let last = 0
        while (last !== length) {
          last = lengths[--count]!
          bits &= ~(1 << last)
        }
      } else {
        lengths[count++] = length
        bits |= 1 << length
      }
      runs.isEmpty = count === 0
    },
    has(length: number) {
      return length <= LONGEST_RUN && (bits & (1 << length)) !== 0
    },
    largestOf(numbers: Float64Array) {
      let largest = Number.NEGATIVE_INFINITY
      for (let i = 0; i < count; i++) largest = Math.max(largest, numbers[lengths[i]!]!)
      return largest
    },
    clear() {
      count = 0
      bits = 0
      runs.isEmpty = true
    },
  }
  return runs
}
