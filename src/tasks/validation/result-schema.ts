/**
 * Checks results by JSON schemas that agents write. Ajv does the checking. It compiles a schema to code and is made for
 * untrusted data, not for untrusted schemas, so this file limits what reaches it: a schema is rebuilt from a list of
 * allowed keywords, without references, regular expressions, ids and annotations (decision 0018).
 */
import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import { z } from 'zod'
import { AppError, reasonOf } from '../../base/errors.ts'
import { failure, type Result } from '../../base/result.ts'

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
  return compiled.ok ? undefined : unusable(compiled.error)
}

function unusable(why: string): AppError {
  return new AppError('INVALID_COMMAND', `delegate: the result_schema cannot be used: ${why}`, {
    hint: 'Use a JSON schema without references and patterns, such as {"type":"object","required":["price"],"properties":{"price":{"type":"number"}}}.',
  })
}

/** The problem of a result, for the worker. */
export function problemWith(schema: JsonSchema, result: string): string | undefined {
  const json = readJson(result)
  if (json === undefined) {
    return 'the result is not JSON; report nothing but a JSON value that fits the schema of the task'
  }
  const compiled = compileSchema(schema)
  // Only for a task that an older version stored with a schema that this one refuses.
  if (!compiled.ok) return `the schema of the task cannot be used: ${compiled.error}`
  let problems: string[]
  try {
    problems = compiled.value(json.value)
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

/** Reads the whole text, or the only fenced block in it: models like to wrap JSON. */
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

type JsonSchema = Readonly<Record<string, unknown>>

/** Levels of JSON. A schema nested this deep describes no result, and compiling takes a stack frame for each. */
const MAX_DEPTH = 64

/**
 * Each subschema may look at each value of a result, and Ajv's larger functions run slower than in proportion: with 200
 * alternatives for 50,000 items a check takes about a second, with 1,000 it took minutes.
 */
const MAX_SUBSCHEMAS = 200

/** Upper bound of the errors that a check for all problems may collect in memory. */
const MAX_COLLECTED_ERRORS = 1_000_000

type ProblemsOf = (value: unknown) => string[]

/** Refuses a schema that it could not enforce in full, because its results would only seem checked. */
function compileSchema(schema: JsonSchema): Result<ProblemsOf, string> {
  if (isDeeperThan(MAX_DEPTH, schema)) return failure(`it is nested more than ${MAX_DEPTH} levels deep`)
  const build: Rebuild = { texts: new WeakMap(), subschemas: 0 }
  try {
    const safe = rebuild(schema, build)
    metaSchema ??= new Ajv2020({ strict: false, logger: false, validateFormats: false })
    if (!metaSchema.validateSchema(safe as JsonSchema))
      return failure(describeSchemaError(metaSchema.errors!))
    const firstProblem = compile(safe, false)
    const size = JSON.stringify(schema).length
    const problemsOf = (value: unknown) => {
      if (firstProblem(value)) return []
      // A keyword takes at least four characters, and every keyword may fail for every value.
      const mayListAll = (size / 4) * countValues(value) <= MAX_COLLECTED_ERRORS
      const check = mayListAll ? compile(safe, true) : firstProblem
      check(value)
      return describeErrors(check.errors ?? [], build.texts)
    }
    return { ok: true, value: problemsOf }
  } catch (error) {
    // Thrown by `rebuild`, or by Ajv for the few values that its meta-schema accepts, such as an empty enum.
    return failure(reasonOf(error))
  }
}

/** Knows the values that each keyword may have. Created when the first schema comes. */
let metaSchema: Ajv2020 | undefined

/** An instance for each schema: Ajv never forgets a schema that it compiled. */
function compile(schema: unknown, allErrors: boolean) {
  const ajv = new Ajv2020({
    allErrors,
    formats: FORMATS,
    strict: false,
    logger: false,
    // For `parentSchema` in errors.
    verbose: true,
    meta: false,
    validateSchema: false,
    addUsedSchema: false,
    // `toString` is not a property of {}.
    ownProperties: true,
    // 0.3 is a multiple of 0.1, although not in binary.
    multipleOfPrecision: 7,
    code: { optimize: false },
  })
  // Ajv's own keyword compares every pair of items, for every schema that asks for it.
  const known = new WeakMap<unknown[], boolean>()
  ajv.removeKeyword('uniqueItems')
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    error: { message: 'must NOT have equal items' },
    validate: (isAsked: boolean, items: unknown[]) => {
      if (!isAsked) return true
      const isUnique = known.get(items) ?? new Set(items.map(canonicalText)).size === items.length
      known.set(items, isUnique)
      return isUnique
    },
  })
  return ajv.compile(schema as JsonSchema)
}

/** Not ajv-formats: some of its expressions take quadratic time. */
const FORMATS: Readonly<Record<string, (text: string) => boolean>> = {
  email: fits(z.email()),
  uuid: fits(z.guid()),
  date: fits(z.iso.date()),
  'date-time': fits(z.iso.datetime({ offset: true })),
  time: (text) => fits(z.iso.datetime({ offset: true }))(`2000-01-01T${text}`),
  duration: fits(z.iso.duration()),
  uri: (text) => URL.canParse(text),
  url: (text) => URL.canParse(text),
  hostname: fits(z.hostname()),
  ipv4: fits(z.ipv4()),
  ipv6: fits(z.ipv6()),
}

function fits(format: z.ZodType): (text: string) => boolean {
  return (text) => format.safeParse(text).success
}

/**
 * The keywords of draft 2020-12 except references, patterns, conditions and unevaluated…, with `nullable` and tuples of
 * older drafts. `plain` ones contain no subschema.
 */
const KEYWORDS = {
  plain: new Set([
    ...['type', 'enum', 'const', 'nullable', 'format', 'multipleOf', 'uniqueItems', 'required'],
    ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'minLength', 'maxLength'],
    ...['minItems', 'maxItems', 'minContains', 'maxContains', 'minProperties', 'maxProperties'],
    'dependentRequired',
  ]),
  schemas: new Set([
    ...['items', 'prefixItems', 'additionalItems', 'contains', 'additionalProperties', 'propertyNames'],
    ...['allOf', 'anyOf', 'oneOf', 'not'],
  ]),
  ignored: new Set([
    ...['title', 'description', 'default', 'example', 'examples', 'deprecated', 'readOnly', 'writeOnly'],
    ...['$schema', '$id', 'id', '$comment', '$anchor', '$defs', 'definitions'],
    ...['contentEncoding', 'contentMediaType', 'contentSchema', 'propertyOrdering'],
  ]),
}

interface Rebuild {
  /** Error texts of combined schemas, by the schema that replaces them. */
  readonly texts: WeakMap<object, string>
  subschemas: number
}

/** Values that aren't what their keyword needs pass unchanged, and the meta-schema refuses them. */
function rebuild(schema: unknown, build: Rebuild): unknown {
  build.subschemas += 1
  if (build.subschemas > MAX_SUBSCHEMAS) throw new Error(`it has more than ${MAX_SUBSCHEMAS} subschemas`)
  if (!isObject(schema)) return schema
  const inner = (value: unknown): unknown =>
    Array.isArray(value) ? value.map((one) => rebuild(one, build)) : rebuild(value, build)
  const known: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(schema)) {
    // Ajv passes over a property of this name.
    if (isObject(value) && Object.hasOwn(value, '__proto__') && name !== 'const')
      throw new Error('a property "__proto__" is not supported')
    if (name === 'format' && !Object.hasOwn(FORMATS, String(value)))
      throw new Error('"format": is not a known format')
    if (KEYWORDS.plain.has(name)) known[name] = value
    else if (KEYWORDS.schemas.has(name)) known[name] = inner(value)
    else if (name === 'properties') {
      known[name] = isObject(value)
        ? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, rebuild(one, build)]))
        : value
    } else if (!KEYWORDS.ignored.has(name) && !name.startsWith('x-'))
      throw new Error(`"${name.slice(0, 60)}" is not supported`)
  }
  return combine(known, build)
}

function combine(known: Record<string, unknown>, { texts }: Rebuild): JsonSchema {
  const {
    nullable,
    additionalItems,
    contains,
    minContains = 1,
    maxContains,
    anyOf,
    oneOf,
    allOf,
    ...rest
  } = known
  const parts: unknown[] = allOf === undefined ? [] : [{ allOf }]
  /** Inside `not`, Ajv keeps no errors. Alternatives would otherwise collect one for each of them and each item. */
  const addSilent = (part: JsonSchema, text: string) => {
    const wrapper = { not: { not: part } }
    texts.set(wrapper, text)
    parts.push(wrapper)
  }
  if (contains !== undefined) {
    const most = maxContains === undefined ? '' : ` and at most ${maxContains}`
    const text = `must contain at least ${minContains}${most} items that fit the schema under "contains"`
    addSilent({ contains, minContains, maxContains }, text)
  }
  // A single alternative is a condition like any other, whose errors help.
  if (Array.isArray(anyOf) && anyOf.length === 1) parts.push(anyOf[0])
  else if (anyOf !== undefined) addSilent({ anyOf }, `must fit one of ${lengthOf(anyOf)} alternatives`)
  if (oneOf !== undefined) addSilent({ oneOf }, `must fit exactly one of ${lengthOf(oneOf)} alternatives`)
  if (Array.isArray(rest.items) && rest.prefixItems === undefined) {
    rest.prefixItems = rest.items
    rest.items = additionalItems ?? true
  }
  const all = parts.length === 0 ? rest : { ...rest, allOf: parts }
  return nullable === true ? { if: { type: 'null' }, else: all } : all
}

function lengthOf(alternatives: unknown): number {
  return Array.isArray(alternatives) ? alternatives.length : 0
}

/** Names the keyword with the wrong value. */
function describeSchemaError([first, ...others]: readonly ErrorObject[]): string {
  const keyword = first!.instancePath.split('/').findLast((part) => /\D/.test(part)) ?? 'the schema'
  return `"${keyword}": ${[first!, ...others].map(messageOf).join(' or ')}`
}

function describeErrors(errors: readonly ErrorObject[], texts: WeakMap<object, string>): string[] {
  const problems = errors
    // The errors that follow from the condition say more.
    .filter(({ keyword }) => keyword !== 'if')
    .map((error) => {
      const path = error.instancePath
        .split('/')
        .slice(1)
        .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
      const combined = error.parentSchema && texts.get(error.parentSchema)
      return `${path.length === 0 ? 'the result' : path.join('.')}: ${combined ?? messageOf(error)}`
    })
  return problems.length > 0 ? problems : ['the result: must fit the schema']
}

/** Ajv's message, with the names and values that it leaves out. */
function messageOf({ message, params, propertyName }: ErrorObject): string {
  const details: unknown = params.allowedValues ?? params.allowedValue ?? params.additionalProperty
  const where = propertyName === undefined ? '' : `the name ${JSON.stringify(propertyName)} `
  return `${where}${message}${details === undefined ? '' : `: ${JSON.stringify(details)}`}`
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Equal values have equal texts, whatever the order of their fields. */
function canonicalText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join()}]`
  if (!isObject(value)) return JSON.stringify(value)
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${fields.map(([key, inner]) => `${JSON.stringify(key)}:${canonicalText(inner)}`).join()}}`
}

function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((inner) => isDeeperThan(levels - 1, inner))
}

function countValues(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce<number>((sum, inner) => sum + countValues(inner), 1)
}
