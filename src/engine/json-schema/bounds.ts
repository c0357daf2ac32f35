import type { z } from 'zod'
import { isFields, type Keyword, NONE, one } from './keyword.ts'

/** A limit of a number, of a length, or of how many there are. */
export function bound(
  shape: z.ZodType,
  measure: (value: unknown) => number | undefined,
  holds: Holds,
): Keyword {
  return {
    shape,
    check(value, limit: number) {
      const measured = measure(value)
      return measured === undefined || holds.of(measured, limit) ? NONE : one(`${holds.text} ${limit}`)
    },
  }
}
interface Holds {
  of(measured: number, limit: number): boolean
  text: string
}

export const size = (value: unknown) => (typeof value === 'number' ? value : undefined)
export const length = (value: unknown) => (typeof value === 'string' ? [...value].length : undefined)
export const items = (value: unknown) => (Array.isArray(value) ? value.length : undefined)
export const fields = (value: unknown) => (isFields(value) ? Object.keys(value).length : undefined)
export const atLeast = (of: string): Holds => ({ of: (a, b) => a >= b, text: `${of} at least` })
export const atMost = (of: string): Holds => ({ of: (a, b) => a <= b, text: `${of} at most` })
