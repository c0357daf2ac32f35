import type { z } from 'zod'
import { didYouMean } from '../base/suggestion.ts'
import type { Path, Report } from './problem.ts'

type Issue = z.core.$ZodIssue

interface ShapeProblem {
  readonly path: Path
  readonly message: string
  readonly hint: string
  readonly what?: 'key'
}

/** Texts for hints about one kind of document. */
interface HintTexts extends Description {
  /** A specific hint for an unknown key that people commonly try. */
  hintForKey?(key: string, parent: Path): string | undefined
  /** The kind of name expected at the path; an agent name by default. */
  kindOfName?(path: Path): string | undefined
}

/** Checks the data against the schema and reports problems in terms of the document. */
export function checkShape<S extends z.ZodType>(
  schema: S,
  hints: HintTexts,
  value: unknown,
  report: Report,
): z.output<S> | undefined {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const checked = { hints, root: value }
  for (const issue of parsed.error.issues) {
    for (const found of findings(issue, issue.path as Path, checked)) {
      report(found.path, found.message, found.hint, found.what)
    }
  }
  return undefined
}

interface Checked {
  readonly hints: HintTexts
  readonly root: unknown
}

function findings(issue: Issue, path: Path, checked: Checked): ShapeProblem[] {
  const { hints, root } = checked
  const key = path.at(-1)
  const subject = key === undefined ? 'The file' : typeof key === 'number' ? 'The entry' : `"${key}"`
  const value = valueAt(root, path)
  const hint = hints.describe(path)
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((unknown) => unknownKey(unknown, path, hints))
    case 'invalid_key':
      return [
        {
          path,
          message: `${subject} is not a valid ${hints.kindOfName?.(path) ?? 'agent name'}`,
          hint: NAME_HINT,
          what: 'key',
        },
      ]
    case 'too_small':
      return [{ path, message: `${subject} ${bound(issue.origin, 'at least', Number(issue.minimum))}`, hint }]
    case 'too_big':
      return [{ path, message: `${subject} ${bound(issue.origin, 'at most', Number(issue.maximum))}`, hint }]
    case 'invalid_format': {
      const isName = issue.message.endsWith('agent name')
      return [{ path, message: `${subject} ${issue.message}`, hint: isName ? NAME_HINT : hint }]
    }
  }
  if (value === undefined || value === null) {
    return [{ path, message: `${subject} is ${value === null ? 'empty' : 'missing'}`, hint }]
  }
  switch (issue.code) {
    case 'invalid_union':
      return union(issue, path, checked) ?? [{ path, message: `${subject} cannot be ${kindOf(value)}`, hint }]
    case 'invalid_value': {
      const choices = issue.values.map(String)
      const message = `${subject} must be one of: ${choices.join(', ')} (got ${kindOf(value)})`
      return [{ path, message, hint: typeof value === 'string' ? didYouMean(value, choices, hint) : hint }]
    }
    case 'invalid_type': {
      const message = `${subject} must be ${kindWanted(issue.expected)} (got ${kindOf(value)})`
      const quotable = issue.expected === 'string' && typeof value !== 'object'
      return [{ path, message, hint: quotable ? `To use it as text, put it in quotes. ${hint}` : hint }]
    }
    default:
      return [{ path, message: `${subject}: ${issue.message}`, hint }]
  }
}

const NAME_HINT = 'A name starts with a letter, then letters, digits, _ and -, at most 64.'

function unknownKey(key: string, parent: Path, hints: HintTexts): ShapeProblem {
  const known = hints.knownKeys(parent)
  const otherwise = known.length > 0 ? `Known keys: ${known.join(', ')}.` : 'Remove it.'
  const hint = hintForKey(key, parent, hints) ?? didYouMean(key, known, otherwise)
  const shown = key.length > 64 ? `${key.slice(0, 64)}…` : key
  return { path: [...parent, key], message: `Unknown key "${shown}"`, hint, what: 'key' }
}

function hintForKey(key: string, parent: Path, hints: HintTexts): string | undefined {
  if (key === '<<') return 'Merge keys are not part of YAML 1.2; use an alias for the whole value.'
  return hints.hintForKey?.(key, parent)
}

/** Reports the union member whose outer type fits the value; undefined when no member's does. */
function union(
  issue: z.core.$ZodIssueInvalidUnion,
  path: Path,
  checked: Checked,
): ShapeProblem[] | undefined {
  const member = issue.errors.find((branch) =>
    branch.every(
      (inner) =>
        inner.path.length > 0 ||
        FITTING_ISSUES.has(inner.code) ||
        isChoice(inner, valueAt(checked.root, path)),
    ),
  )
  return member?.flatMap((inner) => findings(inner, [...path, ...(inner.path as Path)], checked))
}

/** Whether the value is text and the member expects one of several words. */
function isChoice(inner: Issue, value: unknown): boolean {
  return inner.code === 'invalid_value' && inner.values.length > 1 && typeof value === 'string'
}

const FITTING_ISSUES: ReadonlySet<Issue['code']> = new Set(['too_small', 'too_big', 'unrecognized_keys'])

function valueAt(root: unknown, path: Path): unknown {
  return path.reduce<unknown>((value, part) => {
    const inside = typeof value === 'object' && value !== null && Object.hasOwn(value, part)
    return inside ? (value as Record<string | number, unknown>)[part] : undefined
  }, root)
}

const KINDS: Record<string, string> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'a map (key: value)',
  record: 'a map (key: value)',
  array: 'a list',
}

function kindWanted(expected: string): string {
  return KINDS[expected] ?? expected
}

/** Shows text only when it is short: long text may be a secret or a whole file. */
function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'boolean' || typeof value === 'number') return String(value)
  if (typeof value === 'string' && value.length <= 20) return JSON.stringify(value)
  return KINDS[typeof value] ?? typeof value
}

function bound(origin: string, word: 'at least' | 'at most', limit: number): string {
  if (origin === 'string') return limit === 1 ? 'must not be empty' : `must have ${word} ${limit} characters`
  if (origin === 'array')
    return limit === 1 ? 'must not be an empty list' : `must have ${word} ${limit} entries`
  return `must be ${word} ${limit}`
}

interface SchemaNode {
  description?: string
  properties?: Record<string, SchemaNode>
  additionalProperties?: SchemaNode | boolean
  items?: SchemaNode
  anyOf?: SchemaNode[]
}

/** The descriptions of a published JSON schema, as editors show them. */
interface Description {
  /** Describes a key, or its nearest ancestor that has a description. */
  describe(path: Path): string
  /** The keys that the map at that path may have. */
  knownKeys(path: Path): string[]
}

/** @param example the minimal working document, shown when a hint concerns the whole document */
export function describeBy(schema: () => Record<string, unknown>, example: string): Description {
  let published: SchemaNode | undefined

  /** All alternatives that the schema allows at a path. */
  function schemasAt(path: Path): SchemaNode[] {
    published ??= schema() as SchemaNode
    return path.reduce<SchemaNode[]>(
      (found, part) => found.flatMap((form) => inside(form, part)),
      forms(published),
    )
  }

  return {
    describe(path) {
      for (let depth = path.length; depth > 0; depth--) {
        const text = schemasAt(path.slice(0, depth)).find((form) => form.description)?.description
        if (text !== undefined) return text
      }
      return `A minimal example: ${example}`
    },
    knownKeys: (path) => schemasAt(path).flatMap((form) => Object.keys(form.properties ?? {})),
  }
}

function inside(schema: SchemaNode, part: string | number): SchemaNode[] {
  if (typeof part === 'number') return forms(schema.items)
  if (schema.properties && Object.hasOwn(schema.properties, part)) return forms(schema.properties[part])
  return typeof schema.additionalProperties === 'object' ? forms(schema.additionalProperties) : []
}

function forms(schema: SchemaNode | undefined): SchemaNode[] {
  return schema === undefined ? [] : [schema, ...(schema.anyOf ?? []).flatMap(forms)]
}
