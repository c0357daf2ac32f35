import { z } from 'zod'
import { AppError, reasonOf } from '../model/errors.ts'

/** The JSON schema that a delegator gives for the result of a task. */
export type ResultSchema = Readonly<Record<string, unknown>>

/** Of the schema as JSON: it goes to the worker with the task. */
const MOST_BYTES = 20_000
const MOST_PROBLEMS = 10
/** What could make a check run for ever, or refer to what is not there. */
const REFUSED: ReadonlySet<string> = new Set(['pattern', 'patternProperties', '$ref', '$dynamicRef'])
/** Keywords whose keys are names, not keywords. */
const NAMED: ReadonlySet<string> = new Set(['properties', 'dependentRequired'])
/** Keywords that hold values, not schemas. */
const VALUES: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'examples'])

/** Whether results can be checked by it; asked when it is given, so that nobody works for a schema that nothing fits. */
export function unusableSchema(schema: ResultSchema): AppError | undefined {
  const bytes = Buffer.byteLength(JSON.stringify(schema))
  if (bytes > MOST_BYTES) return unusable(`it is ${bytes} bytes; it holds at most ${MOST_BYTES}`)
  const refused = findRefused(schema)
  if (refused !== undefined) return unusable(`"${refused}" is not supported`)
  try {
    z.fromJSONSchema(schema as z.core.JSONSchema.JSONSchema)
    return undefined
  } catch (error) {
    return unusable(reasonOf(error).slice(0, 300))
  }
}

function unusable(why: string): AppError {
  return new AppError('INVALID_COMMAND', `delegate: the result_schema cannot be used: ${why}`, {
    hint: 'A JSON schema without references and patterns, such as {"type":"object","required":["price"],"properties":{"price":{"type":"number"}}}.',
  })
}

function findRefused(schema: unknown, areNames = false): string | undefined {
  if (Array.isArray(schema)) return firstOf(schema.map((one) => () => findRefused(one)))
  if (typeof schema !== 'object' || schema === null) return undefined
  const entries = Object.entries(schema)
  if (areNames)
    return firstOf(
      entries.map(
        ([, one]) =>
          () =>
            findRefused(one),
      ),
    )
  const own = entries.find(([key]) => REFUSED.has(key))?.[0]
  if (own !== undefined) return own
  const inner = entries.filter(([key]) => !VALUES.has(key))
  return firstOf(
    inner.map(
      ([key, one]) =>
        () =>
          findRefused(one, NAMED.has(key)),
    ),
  )
}

function firstOf(looks: readonly (() => string | undefined)[]): string | undefined {
  for (const look of looks) {
    const found = look()
    if (found !== undefined) return found
  }
  return undefined
}

/** What is wrong with a result, in words for whoever reported it. */
export function problemWith(schema: ResultSchema, result: string): string | undefined {
  const json = readJson(result)
  if (json === undefined) {
    return 'the result is not JSON; report nothing but a JSON value that fits the schema of the task'
  }
  const read = z.fromJSONSchema(schema as z.core.JSONSchema.JSONSchema).safeParse(json.value)
  if (read.success) return undefined
  const problems = read.error.issues.map(
    ({ path, message }) => `${path.length === 0 ? 'the result' : path.join('.')}: ${message}`,
  )
  const more = problems.length > MOST_PROBLEMS ? `; and ${problems.length - MOST_PROBLEMS} more` : ''
  return `the result does not fit the schema of the task: ${problems.slice(0, MOST_PROBLEMS).join('; ')}${more}`
}

/** The whole, or the one fenced block in it: models like to wrap what they were asked for. */
function readJson(text: string): { value: unknown } | undefined {
  const fenced = [...text.matchAll(/^```(?:json)?[ \t]*\n([\s\S]*?)^```/gim)]
  for (const candidate of [text, ...(fenced.length === 1 ? [fenced[0]![1]!] : [])]) {
    try {
      return { value: JSON.parse(candidate) as unknown }
    } catch {
      // The next one.
    }
  }
  return undefined
}
