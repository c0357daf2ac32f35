/** Keywords that put schemas together. */
import { z } from 'zod'
import { aSchema, type Judge, type Keyword, NONE, one, type Schema } from './keyword.ts'

function fitting(schemas: readonly Schema[], value: unknown, judge: Judge): number {
  return schemas.filter((schema) => judge(schema, value).length === 0).length
}

export const COMBINATIONS: Readonly<Record<string, Keyword>> = {
  allOf: {
    shape: z.array(aSchema).min(1),
    holds: 'list',
    check: (value, all: Schema[], _, judge) => all.flatMap((schema) => judge(schema, value)),
  },
  anyOf: {
    shape: z.array(aSchema).min(1),
    holds: 'list',
    check(value, any: Schema[], _, judge) {
      const tried = any.map((schema) => judge(schema, value))
      if (tried.some((problems) => problems.length === 0)) return NONE
      return tried.length === 1 ? tried[0]! : one(`fits none of ${any.length} alternatives`)
    },
  },
  oneOf: {
    shape: z.array(aSchema).min(1),
    holds: 'list',
    check(value, any: Schema[], _, judge) {
      const count = fitting(any, value, judge)
      return count === 1 ? NONE : one(`fits ${count} of ${any.length} alternatives, and must fit one`)
    },
  },
  not: {
    shape: aSchema,
    holds: 'one',
    check: (value, refused: Schema, _, judge) =>
      judge(refused, value).length > 0 ? NONE : one('fits what it must not fit'),
  },
}
