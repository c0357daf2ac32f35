/** Keywords about the items of an array. */
import { z } from 'zod'
import { atLeast, atMost, bound, items } from './bounds.ts'
import {
  type Annotated,
  aCount,
  aSchema,
  below,
  type Judge,
  type Keyword,
  NONE,
  one,
  type Problem,
  type Schema,
  textOf,
} from './keyword.ts'

function eachItem(value: unknown, from: number, schema: Schema, judge: Judge): Problem[] {
  if (!Array.isArray(value)) return NONE
  return value.slice(from).flatMap((item, index) => below(from + index, judge(schema, item)))
}

function prefixLength({ prefixItems, items }: Annotated): number {
  if (Array.isArray(prefixItems)) return prefixItems.length
  return Array.isArray(items) ? items.length : 0
}

function eachOfPrefix(value: unknown, prefix: readonly Schema[], judge: Judge): Problem[] {
  if (!Array.isArray(value)) return NONE
  return value.slice(0, prefix.length).flatMap((item, at) => below(at, judge(prefix[at]!, item)))
}

export const LISTS: Readonly<Record<string, Keyword>> = {
  minItems: bound(aCount, items, atLeast('its number of items must be')),
  maxItems: bound(aCount, items, atMost('its number of items must be')),
  uniqueItems: {
    shape: z.boolean(),
    check(value, isAsked: boolean) {
      if (!isAsked || !Array.isArray(value)) return NONE
      return new Set(value.map(textOf)).size === value.length ? NONE : one('its items must differ')
    },
  },
  prefixItems: {
    shape: z.array(aSchema),
    holds: 'list',
    check: (value, prefix: Schema[], _, judge) => eachOfPrefix(value, prefix, judge),
  },
  // A list here is what older drafts have for prefixItems.
  items: {
    shape: z.union([aSchema, z.array(aSchema)], { error: 'must be a schema' }),
    holds: 'list',
    check(value, said: Schema | Schema[], schema, judge) {
      if (Array.isArray(said)) return eachOfPrefix(value, said, judge)
      return eachItem(value, prefixLength(schema), said, judge)
    },
  },
  additionalItems: {
    shape: aSchema,
    holds: 'one',
    check: (value, rest: Schema, schema, judge) =>
      Array.isArray(schema.items) ? eachItem(value, prefixLength(schema), rest, judge) : NONE,
  },
  contains: {
    shape: aSchema,
    holds: 'one',
    check(value, wanted: Schema, { minContains = 1, maxContains = Infinity }, judge) {
      if (!Array.isArray(value)) return NONE
      const found = value.filter((item) => judge(wanted, item).length === 0).length
      if (found < (minContains as number)) return one(`must contain ${minContains} that it has ${found} of`)
      return found <= (maxContains as number)
        ? NONE
        : one(`must contain at most ${maxContains} such, not ${found}`)
    },
  },
  minContains: { shape: aCount, check: () => NONE },
  maxContains: { shape: aCount, check: () => NONE },
}
