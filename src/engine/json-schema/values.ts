/** Keywords about a single value: its type, its size, its form. */
import { z } from 'zod'
import { atLeast, atMost, bound, length, size } from './bounds.ts'
import { isFormatted } from './formats.ts'
import { aCount, isFields, type Keyword, NONE, one, textOf } from './keyword.ts'

const IS = {
  string: (value: unknown) => typeof value === 'string',
  number: (value: unknown) => typeof value === 'number',
  integer: (value: unknown) => Number.isInteger(value),
  boolean: (value: unknown) => typeof value === 'boolean',
  null: (value: unknown) => value === null,
  array: (value: unknown) => Array.isArray(value),
  object: (value: unknown) => isFields(value),
}
type TypeName = keyof typeof IS

const aType = z.enum(Object.keys(IS) as TypeName[])

function isMultiple(value: number, of: number): boolean {
  const times = value / of
  // 0.3 is a multiple of 0.1 for whoever writes it, if not in binary.
  return Math.abs(times - Math.round(times)) <= 1e-9 * Math.max(1, Math.abs(times))
}

export const VALUES: Readonly<Record<string, Keyword>> = {
  type: {
    shape: z.union([aType, z.array(aType).min(1)], {
      error: `must be of ${Object.keys(IS).join(', ')}`,
    }),
    check(value, type: TypeName | TypeName[]) {
      const types = [type].flat()
      return types.some((name) => IS[name](value)) ? NONE : one(`must be ${types.join(' or ')}`)
    },
  },
  enum: {
    shape: z.array(z.unknown()).min(1),
    check(value, allowed: unknown[]) {
      const texts = allowed.map(textOf)
      return texts.includes(textOf(value)) ? NONE : one(`must be one of ${texts.join(', ')}`)
    },
  },
  const: {
    shape: z.unknown(),
    check: (value, only: unknown) => (textOf(value) === textOf(only) ? NONE : one(`must be ${textOf(only)}`)),
  },
  nullable: { shape: z.boolean(), check: () => NONE },

  minimum: bound(z.number(), size, atLeast('must be')),
  maximum: bound(z.number(), size, atMost('must be')),
  exclusiveMinimum: bound(z.number(), size, { of: (a, b) => a > b, text: 'must be more than' }),
  exclusiveMaximum: bound(z.number(), size, { of: (a, b) => a < b, text: 'must be less than' }),
  multipleOf: bound(z.number().positive(), size, { of: isMultiple, text: 'must be a multiple of' }),

  minLength: bound(aCount, length, atLeast('its length must be')),
  maxLength: bound(aCount, length, atMost('its length must be')),
  format: {
    shape: z.string().refine((name) => isFormatted(name, '') !== undefined, 'is not a known format'),
    check: (value, name: string) =>
      typeof value !== 'string' || isFormatted(name, value) === true
        ? NONE
        : one(`must be in the format ${name}`),
  },
}
