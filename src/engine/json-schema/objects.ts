/** Keywords about the properties of an object. */
import { z } from 'zod'
import { atLeast, atMost, bound, fields } from './bounds.ts'
import {
  aCount,
  aSchema,
  below,
  type Fields,
  isFields,
  type Keyword,
  NONE,
  names,
  type Schema,
} from './keyword.ts'

export const OBJECTS: Readonly<Record<string, Keyword>> = {
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
}
