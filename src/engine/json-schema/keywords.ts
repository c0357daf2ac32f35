/** The keywords of a JSON schema, as its draft 2020-12 has them, but for references and patterns. */
import { z } from 'zod'
import { isFormatted } from './formats.ts'

export type Annotated = Readonly<Record<string, unknown>>
export type Schema = boolean | Annotated

/** Where in the value, and what is wrong there. */
export interface Problem {
  path: readonly (string | number)[]
  text: string
}

type Judge = (schema: Schema, value: unknown) => Problem[]

export interface Keyword {
  /** What may stand there. */
  shape: z.ZodType
  /** The schemas in it, by how they stand there. */
  holds?: 'one' | 'list' | 'named'
  check(value: unknown, limit: never, schema: Annotated, judge: Judge): Problem[]
}

type Fields = Readonly<Record<string, unknown>>

const NONE: Problem[] = []
const one = (text: string): Problem[] => [{ path: [], text }]
const below = (key: string | number, problems: Problem[]): Problem[] =>
  problems.map(({ path, text }) => ({ path: [key, ...path], text }))

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

const aSchema = z.union([z.boolean(), z.record(z.string(), z.unknown())], { error: 'must be a schema' })
const aType = z.enum(Object.keys(IS) as TypeName[])
const aCount = z.number().int().min(0)
const names = z.array(z.string())

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Equal values have equal texts, whatever the order of their fields. */
function textOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(textOf).join()}]`
  if (!isFields(value)) return JSON.stringify(value)
  const fields = Object.keys(value).sort()
  return `{${fields.map((key) => `${JSON.stringify(key)}:${textOf(value[key])}`).join()}}`
}

/** A limit of a number, of a length, or of how many there are. */
function bound(shape: z.ZodType, measure: (value: unknown) => number | undefined, holds: Holds): Keyword {
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

const size = (value: unknown) => (typeof value === 'number' ? value : undefined)
const length = (value: unknown) => (typeof value === 'string' ? [...value].length : undefined)
const items = (value: unknown) => (Array.isArray(value) ? value.length : undefined)
const fields = (value: unknown) => (isFields(value) ? Object.keys(value).length : undefined)
const atLeast = (of: string): Holds => ({ of: (a, b) => a >= b, text: `${of} at least` })
const atMost = (of: string): Holds => ({ of: (a, b) => a <= b, text: `${of} at most` })

function isMultiple(value: number, of: number): boolean {
  const times = value / of
  // 0.3 is a multiple of 0.1 for whoever writes it, if not in binary.
  return Math.abs(times - Math.round(times)) <= 1e-9 * Math.max(1, Math.abs(times))
}

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

function fitting(schemas: readonly Schema[], value: unknown, judge: Judge): number {
  return schemas.filter((schema) => judge(schema, value).length === 0).length
}

export const KEYWORDS: Readonly<Record<string, Keyword>> = {
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

  minProperties: bound(aCount, fields, atLeast('its number of properties must be')),
  maxProperties: bound(aCount, fields, atMost('its number of properties must be')),
  required: {
    shape: names,
    check(value, wanted: string[]) {
      if (!isFields(value)) return NONE
      return wanted
        .filter((key) => !Object.hasOwn(value, key))
        .map((key) => ({ path: [key], text: 'is missing' }))
    },
  },
  dependentRequired: {
    shape: z.record(z.string(), names),
    check(value, dependent: Readonly<Record<string, string[]>>) {
      if (!isFields(value)) return NONE
      return Object.entries(dependent)
        .filter(([key]) => Object.hasOwn(value, key))
        .flatMap(([key, wanted]) =>
          wanted
            .filter((other) => !Object.hasOwn(value, other))
            .map((other) => ({ path: [other], text: `is missing beside ${key}` })),
        )
    },
  },
  properties: {
    shape: z.record(z.string(), aSchema),
    holds: 'named',
    check(value, known: Readonly<Record<string, Schema>>, _, judge) {
      if (!isFields(value)) return NONE
      return Object.entries(known)
        .filter(([key]) => Object.hasOwn(value, key))
        .flatMap(([key, schema]) => below(key, judge(schema, value[key])))
    },
  },
  additionalProperties: {
    shape: aSchema,
    holds: 'one',
    check(value, rest: Schema, { properties = {} }, judge) {
      if (!isFields(value)) return NONE
      return Object.keys(value)
        .filter((key) => !Object.hasOwn(properties as Fields, key))
        .flatMap((key) => below(key, judge(rest, value[key])))
    },
  },
  propertyNames: {
    shape: aSchema,
    holds: 'one',
    check: (value, name: Schema, _, judge) =>
      isFields(value) ? Object.keys(value).flatMap((key) => below(key, judge(name, key))) : NONE,
  },

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

/** They say something to the reader, and ask nothing of a value. */
export const ANNOTATIONS: ReadonlySet<string> = new Set([
  ...['title', 'description', 'default', 'example', 'examples', 'deprecated', 'readOnly', 'writeOnly'],
  ...['$schema', '$id', 'id', '$comment', '$anchor', '$defs', 'definitions'],
  ...['contentEncoding', 'contentMediaType', 'contentSchema', 'propertyOrdering'],
])
