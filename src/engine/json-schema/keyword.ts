/** What every keyword of a JSON schema is made of. */
import { z } from 'zod'

export type Annotated = Readonly<Record<string, unknown>>
export type Schema = boolean | Annotated

/** Where in the value, and what is wrong there. */
export interface Problem {
  path: readonly (string | number)[]
  text: string
}

export type Judge = (schema: Schema, value: unknown) => Problem[]

export interface Keyword {
  /** What may stand there. */
  shape: z.ZodType
  /** The schemas in it, by how they stand there. */
  holds?: 'one' | 'list' | 'named'
  check(value: unknown, limit: never, schema: Annotated, judge: Judge): Problem[]
}

export type Fields = Readonly<Record<string, unknown>>

export const NONE: Problem[] = []
export const one = (text: string): Problem[] => [{ path: [], text }]
export const below = (key: string | number, problems: Problem[]): Problem[] =>
  problems.map(({ path, text }) => ({ path: [key, ...path], text }))

export const aSchema = z.union([z.boolean(), z.record(z.string(), z.unknown())], {
  error: 'must be a schema',
})
export const aCount = z.number().int().min(0)
export const names = z.array(z.string())

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Equal values have equal texts, whatever the order of their fields. */
export function textOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(textOf).join()}]`
  if (!isFields(value)) return JSON.stringify(value)
  const fields = Object.keys(value).sort()
  return `{${fields.map((key) => `${JSON.stringify(key)}:${textOf(value[key])}`).join()}}`
}
