/**
 * Checks results by JSON schemas that agents write. Ajv compiles a schema to code and is made for untrusted data, not for
 * untrusted schemas, so a schema is first rebuilt from a list of allowed keywords. No reference, regular expression, id or
 * annotation reaches the compiler (decision 0018).
 */
import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import { z } from 'zod'
import { AppError } from '../../base/errors.ts'

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

/** The problem of a result, for the worker. */
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

export type JsonSchema = Readonly<Record<string, unknown>>
type Subschema = boolean | JsonSchema

/** Levels of JSON. A schema nested this deep describes no result, and compiling takes a stack frame for each. */
const MAX_DEPTH = 64

/**
 * Each subschema may look at each value of a result, and Ajv's larger functions run slower than in proportion: with 200 alternatives for 50,000 items
 * a check takes about a second, with 1,000 it took minutes.
 */
const MAX_SUBSCHEMAS = 200

/** Upper bound of the errors that a check for all problems may collect in memory. */
const MAX_COLLECTED_ERRORS = 1_000_000

type CompiledSchema = { ok: true; problemsOf(value: unknown): string[] } | { ok: false; why: string }

/** Refuses a schema that it could not enforce in full, because its results would only seem checked. */
function compileSchema(schema: JsonSchema): CompiledSchema {
  if (isDeeperThan(MAX_DEPTH, schema))
    return { ok: false, why: `it is nested more than ${MAX_DEPTH} levels deep` }
  const build: Rebuild = { texts: new WeakMap(), subschemas: 0 }
  try {
    const safe = rebuild(schema, build)
    const firstProblem = compile(safe, false)
    const size = JSON.stringify(schema).length
    return {
      ok: true,
      problemsOf(value) {
        if (firstProblem(value)) return []
        const errors = firstProblem.errors ?? []
        // A keyword takes at least four characters, and every keyword may fail for every value.
        if ((size / 4) * countValues(value) > MAX_COLLECTED_ERRORS) return describeErrors(errors, build.texts)
        const allProblems = compile(safe, true)
        allProblems(value)
        return describeErrors(allProblems.errors ?? errors, build.texts)
      },
    }
  } catch (error) {
    if (error instanceof UnsupportedSchema) return { ok: false, why: error.message }
    throw error
  }
}

class UnsupportedSchema extends Error {}

/** An instance for each schema: Ajv never forgets a schema that it compiled. */
function compile(schema: Subschema, allErrors: boolean) {
  const ajv = new Ajv2020({
    allErrors,
    formats: FORMATS,
    strict: false,
    logger: false,
    // For `parentSchema` in errors.
    verbose: true,
    messages: false,
    // The schema is rebuilt from checked keywords already.
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
    errors: false,
    validate: (isAsked: boolean, items: unknown[]) => {
      if (!isAsked) return true
      const isUnique = known.get(items) ?? new Set(items.map(canonicalText)).size === items.length
      known.set(items, isUnique)
      return isUnique
    },
  })
  return ajv.compile(schema as JsonSchema)
}

const aSchema = z.union([z.boolean(), z.record(z.string(), z.unknown())], { error: 'must be a schema' })
const aCount = z.int().min(0)
const names = z.array(z.string())
const schemas = z.array(aSchema).min(1)
const TYPES = ['string', 'number', 'integer', 'boolean', 'null', 'array', 'object'] as const
const aType = z.enum(TYPES)

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

/** The keywords of draft 2020-12 except references, patterns, conditions and unevaluated…, with `nullable` and tuples of older drafts. */
const KEYWORDS = {
  type: z.union([aType, z.array(aType).min(1)], { error: `must be one of: ${TYPES.join(', ')}` }),
  enum: z.array(z.unknown()).min(1),
  const: z.unknown(),
  nullable: z.boolean(),
  minimum: z.number(),
  maximum: z.number(),
  exclusiveMinimum: z.number(),
  exclusiveMaximum: z.number(),
  multipleOf: z.number().positive(),
  minLength: aCount,
  maxLength: aCount,
  format: z.string().refine((name) => Object.hasOwn(FORMATS, name), 'is not a known format'),
  minItems: aCount,
  maxItems: aCount,
  uniqueItems: z.boolean(),
  prefixItems: z.array(aSchema),
  items: z.union([aSchema, z.array(aSchema)], { error: 'must be a schema' }),
  additionalItems: aSchema,
  contains: aSchema,
  minContains: aCount,
  maxContains: aCount,
  minProperties: aCount,
  maxProperties: aCount,
  required: names,
  dependentRequired: z.record(z.string(), names),
  properties: z.record(z.string(), aSchema),
  additionalProperties: aSchema,
  propertyNames: aSchema,
  allOf: schemas,
  anyOf: schemas,
  oneOf: schemas,
  not: aSchema,
} satisfies Record<string, z.ZodType>
type Keywords = { -readonly [Name in keyof typeof KEYWORDS]?: z.output<(typeof KEYWORDS)[Name]> }

const ANNOTATIONS: ReadonlySet<string> = new Set([
  ...['title', 'description', 'default', 'example', 'examples', 'deprecated', 'readOnly', 'writeOnly'],
  ...['$schema', '$id', 'id', '$comment', '$anchor', '$defs', 'definitions'],
  ...['contentEncoding', 'contentMediaType', 'contentSchema', 'propertyOrdering'],
])

function readKeywords(schema: JsonSchema): Keywords {
  const known: Record<string, unknown> = {}
  for (const [name, limit] of Object.entries(schema)) {
    if (ANNOTATIONS.has(name) || name.startsWith('x-')) continue
    if (!Object.hasOwn(KEYWORDS, name)) throw new UnsupportedSchema(`"${name.slice(0, 60)}" is not supported`)
    const read = KEYWORDS[name as keyof Keywords].safeParse(limit)
    if (!read.success) throw new UnsupportedSchema(`"${name}": ${read.error.issues[0]!.message}`)
    known[name] = limit
  }
  return known
}

interface Rebuild {
  /** Error texts of combined schemas, by the schema that replaces them. */
  readonly texts: WeakMap<object, string>
  subschemas: number
}

function rebuild(schema: Subschema, build: Rebuild): Subschema {
  build.subschemas += 1
  if (build.subschemas > MAX_SUBSCHEMAS)
    throw new UnsupportedSchema(`it has more than ${MAX_SUBSCHEMAS} subschemas`)
  if (typeof schema === 'boolean') return schema
  const {
    nullable,
    items,
    additionalItems,
    prefixItems,
    contains,
    minContains = 1,
    maxContains,
    anyOf,
    oneOf,
    ...given
  } = readKeywords(schema)
  if (prefixItems !== undefined && Array.isArray(items)) {
    throw new UnsupportedSchema('"items": must be a schema beside "prefixItems"')
  }
  const one = (inner: Subschema | undefined) => (inner === undefined ? undefined : rebuild(inner, build))
  const all = (inner: readonly Subschema[] | undefined) => inner?.map((schema) => rebuild(schema, build))
  const named = (inner: Readonly<Record<string, unknown>> | undefined) => {
    // Ajv passes over this name.
    if (inner !== undefined && Object.hasOwn(inner, '__proto__')) {
      throw new UnsupportedSchema('a property "__proto__" is not supported')
    }
    return inner
  }
  /** Inside `not`, Ajv drops errors as it goes. Alternatives would otherwise collect one for each of them and each item. */
  const silent = (inner: JsonSchema, text: string) => {
    const wrapper = { not: { not: inner } }
    build.texts.set(wrapper, text)
    return wrapper
  }
  const combinations: Subschema[] = []
  if (contains !== undefined) {
    const text = containsText(minContains, maxContains)
    combinations.push(silent({ contains: rebuild(contains, build), minContains, maxContains }, text))
  }
  // A single alternative is a condition like any other, whose errors help.
  if (anyOf?.length === 1) combinations.push(rebuild(anyOf[0]!, build))
  else if (anyOf)
    combinations.push(silent({ anyOf: all(anyOf) }, `must fit one of ${anyOf.length} alternatives`))
  if (oneOf)
    combinations.push(silent({ oneOf: all(oneOf) }, `must fit exactly one of ${oneOf.length} alternatives`))
  const tuple = Array.isArray(items) ? items : prefixItems
  const properties = named(given.properties) as Readonly<Record<string, Subschema>> | undefined
  const rebuilt = {
    ...given,
    dependentRequired: named(given.dependentRequired),
    properties:
      properties &&
      Object.fromEntries(Object.entries(properties).map(([name, inner]) => [name, rebuild(inner, build)])),
    additionalProperties: one(given.additionalProperties),
    propertyNames: one(given.propertyNames),
    prefixItems: tuple?.length === 0 ? undefined : all(tuple),
    items: one(Array.isArray(items) ? additionalItems : items),
    allOf: [...(all(given.allOf) ?? []), ...combinations],
    not: one(given.not),
  }
  const clean = Object.fromEntries(Object.entries(rebuilt).filter(([, limit]) => limit !== undefined))
  return nullable === true ? { if: { type: 'null' }, else: clean } : clean
}

function describeErrors(errors: readonly ErrorObject[], texts: WeakMap<object, string>): string[] {
  const telling = errors.filter(({ keyword }) => keyword !== 'if' && keyword !== 'propertyNames')
  const problems = telling.map((error) => {
    const path = error.instancePath.split('/').slice(1).map(unescapePointer)
    const combined = error.parentSchema && texts.get(error.parentSchema)
    const [name, text] = combined ? [undefined, combined] : describe(error)
    const inner = name ?? error.propertyName
    if (inner !== undefined) path.push(inner)
    return `${path.length === 0 ? 'the result' : path.join('.')}: ${text}`
  })
  return problems.length > 0 ? problems : ['the result: must fit the schema']
}

const unescapePointer = (part: string) => part.replaceAll('~1', '/').replaceAll('~0', '~')

const COMPARISONS: Readonly<Record<string, string>> = {
  '>=': 'at least',
  '<=': 'at most',
  '>': 'more than',
  '<': 'less than',
}

/** The property in question, if it is not the value itself, and what is wrong with it. */
function describe({ keyword, params, schema }: ErrorObject): [name: string | undefined, text: string] {
  switch (keyword) {
    case 'type':
      return [undefined, `must be ${[schema].flat().join(' or ')}`]
    case 'enum':
      return [undefined, `must be one of: ${(schema as unknown[]).map(canonicalText).join(', ')}`]
    case 'const':
      return [undefined, `must be ${canonicalText(schema)}`]
    case 'minimum':
    case 'maximum':
    case 'exclusiveMinimum':
    case 'exclusiveMaximum':
      return [undefined, `must be ${COMPARISONS[params.comparison as string]} ${params.limit}`]
    case 'multipleOf':
      return [undefined, `must be a multiple of ${schema}`]
    case 'format':
      return [undefined, `must be in the format ${schema}`]
    case 'minLength':
      return [undefined, `must have at least ${schema} characters`]
    case 'maxLength':
      return [undefined, `must have at most ${schema} characters`]
    case 'minItems':
      return [undefined, `must have at least ${schema} items`]
    case 'maxItems':
      return [undefined, `must have at most ${schema} items`]
    case 'uniqueItems':
      return [undefined, 'must not have equal items']
    case 'minProperties':
      return [undefined, `must have at least ${schema} properties`]
    case 'maxProperties':
      return [undefined, `must have at most ${schema} properties`]
    case 'required':
      return [params.missingProperty as string, 'is missing']
    case 'dependentRequired':
      return [params.missingProperty as string, `is missing, and required beside ${params.property}`]
    case 'additionalProperties':
      return [params.additionalProperty as string, 'is not allowed']
    case 'false schema':
      return [undefined, 'is not allowed']
    case 'not':
      return [undefined, 'must not fit the schema under "not"']
    default:
      return [undefined, `must fit "${keyword}"`]
  }
}

function containsText(least: number, most: number | undefined): string {
  const end = most === undefined ? '' : ` and at most ${most}`
  return `must contain at least ${least}${end} items that fit the schema under "contains"`
}

/** Equal values have equal texts, whatever the order of their fields. */
function canonicalText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join()}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
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
