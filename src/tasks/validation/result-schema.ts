import { AppError } from '../../base/errors.ts'
import { compileSchema, type JsonSchema } from './json-schema.ts'

/** Bytes of the schema as JSON, because it goes to the worker with the task. */
const MAX_BYTES = 20_000
const PROBLEMS_SHOWN = 10
/** Characters of one problem, which may quote a whole page. */
const PROBLEM_LENGTH = 200

/** Refuses a delegation with a schema that cannot be enforced. */
export function unusableSchema(schema: JsonSchema): AppError | undefined {
  const bytes = Buffer.byteLength(JSON.stringify(schema))
  if (bytes > MAX_BYTES) return unusable(`it has ${bytes} bytes; at most ${MAX_BYTES} are allowed`)
  const compiled = compileSchema(schema)
  return compiled.ok ? undefined : unusable(compiled.why)
}

function unusable(why: string): AppError {
  return new AppError('INVALID_COMMAND', `delegate: the result_schema cannot be used: ${why}`, {
    hint: 'Use a JSON schema without references and patterns, such as {"type":"object","required":["price"],"properties":{"price":{"type":"number"}}}.',
  })
}

/** Tells the worker what is wrong with its result. */
export function problemWith(schema: JsonSchema, result: string): string | undefined {
  const json = readJson(result)
  if (json === undefined) {
    return 'the result is not JSON; report nothing but a JSON value that fits the schema of the task'
  }
  const compiled = compileSchema(schema)
  // Only for a task that an older version stored with a schema that this one refuses.
  if (!compiled.ok) return `the schema of the task cannot be used: ${compiled.why}`
  let problems: string[]
  try {
    problems = compiled.problemsOf(json.value)
  } catch (error) {
    if (error instanceof RangeError) return 'the result is nested too deeply to be checked'
    throw error
  }
  if (problems.length === 0) return undefined
  const listed = problems.slice(0, PROBLEMS_SHOWN).map(shorten).join('; ')
  const more = problems.length > PROBLEMS_SHOWN ? `; and ${problems.length - PROBLEMS_SHOWN} more` : ''
  return `the result does not fit the schema of the task: ${listed}${more}`
}

function shorten(problem: string): string {
  return problem.length > PROBLEM_LENGTH ? `${problem.slice(0, PROBLEM_LENGTH - 1).toWellFormed()}…` : problem
}

/** Reads the whole text, or the only fenced block in it: models like to wrap what they are asked for. */
function readJson(text: string): { value: unknown } | undefined {
  const fenced = [...text.matchAll(/^```(?:json)?[ \t]*\r?\n([\s\S]*?)^```/gim)]
  for (const candidate of [text, ...(fenced.length === 1 ? [fenced[0]![1]!] : [])]) {
    try {
      return { value: JSON.parse(candidate) as unknown }
    } catch {
      // Try the next candidate.
    }
  }
  return undefined
}
