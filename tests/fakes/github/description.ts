/**
 * GitHub's own OpenAPI description: all calls with their parameters and answers. It has 13 MB, so it is read at the
 * first call, and only the schemas of calls that are made get compiled.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { Ajv, type ValidateFunction } from 'ajv'
import addFormats from 'ajv-formats'

type Json = Record<string, unknown>

interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required?: boolean
  readonly schema: Json
}

interface Operation {
  readonly operationId: string
  readonly parameters?: readonly Json[]
  readonly requestBody?: { required?: boolean; content: Record<string, { schema: Json }> }
  readonly responses: Readonly<Record<string, Json>>
}

export interface Asked {
  readonly method: string
  /** Encoded, as in the request. */
  readonly path: string
  readonly query: URLSearchParams
  /** Undefined without a body. */
  readonly body: unknown
}

interface Found {
  readonly id: string
  readonly operation: Operation
  readonly params: Readonly<Record<string, string>>
}

export type Description = ReturnType<typeof readDescription>

/** github.com, and the oldest described version of Enterprise. */
export type Edition = 'api.github.com' | 'ghes-3.17'

const read = new Map<Edition, Description>()

/** Read once per process. */
export function description(edition: Edition = 'api.github.com'): Description {
  const known = read.get(edition) ?? readDescription(edition)
  read.set(edition, known)
  return known
}

const COMPONENT = 'https://api.github.example/components/'

function readDescription(edition: Edition) {
  const file = createRequire(import.meta.url).resolve(`@octokit/openapi/generated/${edition}.json`)
  const whole = JSON.parse(readFileSync(file, 'utf8')) as {
    paths: Record<string, Record<string, Operation>>
    components: Record<string, Record<string, Json>>
  }
  const ajv = new Ajv({ strict: false, allErrors: false, inlineRefs: false, code: { optimize: false } })
  addFormats.default(ajv)
  for (const format of ['repo.nwo', 'timestamp']) ajv.addFormat(format, true)
  const paths = Object.keys(whole.paths).map(toPattern)
  const compiled = new Map<string, ValidateFunction>()
  const added = new Set<string>()

  /** Follows a reference within the description. */
  function resolve(value: Json): Json {
    if (typeof value.$ref !== 'string') return value
    const [, , kind, name] = value.$ref.split('/')
    return resolve(whole.components[kind!]![name!]!)
  }

  /** Converts OpenAPI 3.0 to JSON Schema: `nullable` differs, and components are added when they are referenced. */
  function schemaOf(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(schemaOf)
    if (typeof value !== 'object' || value === null) return value
    const { nullable, example: _, ...rest } = value as Json
    if (typeof rest.$ref === 'string') return { $ref: component(rest.$ref) }
    const schema = Object.fromEntries(Object.entries(rest).map(([key, part]) => [key, schemaOf(part)]))
    return nullable === true ? { anyOf: [{ type: 'null' }, schema] } : schema
  }

  function component(ref: string): string {
    const name = ref.split('/').at(-1)!
    const id = `${COMPONENT}${name}`
    if (!added.has(name)) {
      added.add(name)
      ajv.addSchema(schemaOf(whole.components.schemas![name]) as Json, id)
    }
    return id
  }

  function problemOf(key: string, schema: Json, value: unknown): string | undefined {
    let validate = compiled.get(key)
    if (validate === undefined) {
      validate = ajv.compile(schemaOf(schema) as Json)
      compiled.set(key, validate)
    }
    if (validate(value)) return undefined
    return ajv.errorsText(validate.errors, { dataVar: key })
  }

  function find(method: string, path: string): Found | undefined {
    const fitting = paths.filter(({ pattern }) => pattern.test(path))
    // `/repos/{owner}/{repo}/issues/comments` before `/repos/{owner}/{repo}/issues/{issue_number}`.
    fitting.sort((one, other) => one.names.length - other.names.length)
    for (const { template, pattern, names } of fitting) {
      const operation = whole.paths[template]![method.toLowerCase()]
      if (operation === undefined) continue
      const values = pattern
        .exec(path)!
        .slice(1)
        .map((value) => decodeURIComponent(value ?? ''))
      const params = Object.fromEntries(names.map((name, index) => [name, values[index]!]))
      return { id: operation.operationId, operation, params }
    }
    return undefined
  }

  function checkParameters({ id, operation, params }: Found, query: URLSearchParams): string[] {
    const known = (operation.parameters ?? []).map((one) => resolve(one) as unknown as Parameter)
    const problems: string[] = []
    for (const name of query.keys()) {
      if (!known.some((one) => one.in === 'query' && one.name === name))
        problems.push(`${id} has no parameter ${name}`)
    }
    for (const { name, in: place, required, schema } of known) {
      const said =
        place === 'path' ? params[name] : place === 'query' ? (query.get(name) ?? undefined) : undefined
      if (said === undefined) {
        if (required && place !== 'header') problems.push(`${id} needs ${name}`)
        continue
      }
      const kind = resolve(schema).type
      const value =
        kind === 'integer' || kind === 'number' ? Number(said) : kind === 'boolean' ? said === 'true' : said
      const problem = problemOf(`${id} ${name}`, schema, value)
      if (problem !== undefined) problems.push(problem)
    }
    return problems
  }

  function checkBody({ id, operation }: Found, body: unknown): string[] {
    const wanted = operation.requestBody?.content['application/json']?.schema
    if (body === undefined) return operation.requestBody?.required ? [`${id} needs a body`] : []
    if (wanted === undefined) return [`${id} takes no body`]
    const problem = problemOf(`${id} body`, wanted, body)
    const fields = fieldsOf(wanted)
    const unknown = Object.keys(body as object).filter((field) => fields !== undefined && !fields.has(field))
    return [...(problem === undefined ? [] : [problem]), ...unknown.map((field) => `${id} takes no ${field}`)]
  }

  /** Closes open schemas: GitHub ignores unknown fields, but a test must not. */
  function fieldsOf(schema: Json): Set<string> | undefined {
    const own = resolve(schema)
    const choices = [own, ...((own.oneOf ?? own.anyOf ?? own.allOf ?? []) as Json[]).map(resolve)]
    const fields = choices.flatMap(({ properties }) => Object.keys((properties ?? {}) as object))
    return fields.length === 0 ? undefined : new Set(fields)
  }

  return {
    find,
    /** The problems of a call; none for a valid one. */
    problemsOfCall({ method, path, query, body }: Asked): string[] {
      const found = find(method, path)
      if (found === undefined) return [`GitHub has no ${method} ${path}`]
      return [...checkParameters(found, query), ...checkBody(found, body)]
    },
    /** The problems of an answer: what GitHub would never send. */
    problemsOfAnswer(
      { method, path }: Pick<Asked, 'method' | 'path'>,
      status: number,
      data: unknown,
    ): string[] {
      const found = find(method, path)
      if (found === undefined) return []
      const { id, operation } = found
      const response = operation.responses[status]
      if (response === undefined) return COMMON.has(status) ? [] : [`${id} never answers ${status}`]
      const { content } = resolve(response) as { content?: Record<string, { schema: Json }> }
      const schema = content?.['application/json']?.schema
      if (schema === undefined) return []
      const problem = problemOf(`${id} ${status}`, schema, data)
      return problem === undefined ? [] : [problem]
    },
    /** The complete example answer of GitHub's documentation; a fake changes only the relevant fields. */
    example(method: string, template: string, status: number): unknown {
      const { responses } = whole.paths[template]![method.toLowerCase()]!
      const { content } = resolve(responses[status]!) as {
        content: Record<string, { examples: Record<string, Json> }>
      }
      const [first] = Object.values(content['application/json']!.examples)
      const { value } = resolve(first!)
      const shown =
        typeof value === 'object' && value !== null && '$ref' in value ? resolve(value as Json).value : value
      return structuredClone(shown)
    },
  }
}

/** Answers that every call may get, although few list them. */
const COMMON: ReadonlySet<number> = new Set([401, 403, 404, 429, 500, 502, 503])

/** `{path}` and `{ref}` match slashes; a path may be empty, as documented for contents. */
function toPattern(template: string) {
  const names: string[] = []
  const source = template.replace(/[.]/g, '\\.').replace(/\/\{(\w+)\}/g, (_, name: string) => {
    names.push(name)
    return name === 'path' ? '(?:/(.*))?' : name === 'ref' ? '/(.+)' : '/([^/]+)'
  })
  return { template, names, pattern: new RegExp(`^${source}$`) }
}
