import { AppError } from '../model/errors.ts'
import { problemsIn } from './json-schema/check.ts'
import type { Problem } from './json-schema/keyword.ts'
import { unsupportedIn } from './json-schema/support.ts'

/** The JSON schema that a delegator gives for the result of a task. */
export type ResultSchema = Readonly<Record<string, unknown>>

/** Of the schema as JSON: it goes to the worker with the task. */
const MOST_BYTES = 20_000
const MOST_PROBLEMS = 10
/** Of one problem: what is wrong may be a whole page. */
const MOST_CHARACTERS = 200

/** Whether results can be checked by it; asked when it is given, so that nobody works for a schema that nothing fits. */
export function unusableSchema(schema: ResultSchema): AppError | undefined {
  const bytes = Buffer.byteLength(JSON.stringify(schema))
  if (bytes > MOST_BYTES) return unusable(`it is ${bytes} bytes; it holds at most ${MOST_BYTES}`)
  const why = unsupportedIn(schema)
  return why === undefined ? undefined : unusable(why)
}

function unusable(why: string): AppError {
  return new AppError('INVALID_COMMAND', `delegate: the result_schema cannot be used: ${why}`, {
    hint: 'A JSON schema without references and patterns, such as {"type":"object","required":["price"],"properties":{"price":{"type":"number"}}}.',
  })
}

/** What is wrong with a result, in words for whoever reported it. */
export function problemWith(schema: ResultSchema, result: string): string | undefined {
  const json = readJson(result)
  if (json === undefined) {
    return 'the result is not JSON; report nothing but a JSON value that fits the schema of the task'
  }
  const problems = lookAt(schema, json.value)
  if (problems === undefined) return 'the result is nested too deep to be checked by the schema of the task'
  if (problems.length === 0) return undefined
  const listed = problems.slice(0, MOST_PROBLEMS).map(wordsFor).join('; ')
  const more = problems.length > MOST_PROBLEMS ? `; and ${problems.length - MOST_PROBLEMS} more` : ''
  return `the result does not fit the schema of the task: ${listed}${more}`
}

/** Undefined where the stack does not hold it. */
function lookAt(schema: ResultSchema, value: unknown): Problem[] | undefined {
  try {
    return problemsIn(schema, value)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

function wordsFor({ path, text }: Problem): string {
  const words = `${path.length === 0 ? 'the result' : path.join('.')}: ${text}`
  return words.length > MOST_CHARACTERS ? `${words.slice(0, MOST_CHARACTERS - 1).toWellFormed()}…` : words
}

/** The whole, or the one fenced block in it: models like to wrap what they were asked for. */
function readJson(text: string): { value: unknown } | undefined {
  const fenced = [...text.matchAll(/^```(?:json)?[ \t]*\r?\n([\s\S]*?)^```/gim)]
  for (const candidate of [text, ...(fenced.length === 1 ? [fenced[0]![1]!] : [])]) {
    try {
      return { value: JSON.parse(candidate) as unknown }
    } catch {
      // The next one.
    }
  }
  return undefined
}
