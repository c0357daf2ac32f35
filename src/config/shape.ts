import type { z } from 'zod'
import { describePath, knownKeys } from './description.ts'
import type { Path, Report } from './problem.ts'
import { type ConfigInput, ConfigSchema } from './schema.ts'
import { didYouMean } from './suggestion.ts'

type Issue = z.core.$ZodIssue

interface Finding {
  readonly path: Path
  readonly message: string
  readonly hint: string
  readonly what?: 'key'
}

/** Checks the data against the schema, and says what is wrong in the words of someone who writes orc.yaml. */
export function checkShape(value: unknown, report: Report): ConfigInput | undefined {
  const parsed = ConfigSchema.safeParse(value)
  if (parsed.success) return parsed.data
  for (const issue of parsed.error.issues) {
    for (const found of findings(issue, issue.path as Path, value)) {
      report(found.path, found.message, found.hint, found.what)
    }
  }
  return undefined
}

function findings(issue: Issue, path: Path, root: unknown): Finding[] {
  const key = path.at(-1)
  const subject = key === undefined ? 'The file' : typeof key === 'number' ? 'The entry' : `"${key}"`
  const value = valueAt(root, path)
  const hint = describePath(path)
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((unknown) => unknownKey(unknown, path))
    case 'invalid_key':
      return [
        {
          path,
          message: `${subject} is not a legal ${path[0] === 'models' ? 'name for a model' : 'agent name'}`,
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
      return union(issue, path, root) ?? [{ path, message: `${subject} cannot be ${kindOf(value)}`, hint }]
    case 'invalid_value': {
      const choices = issue.values.map(String)
      const message = `${subject} must be one of ${choices.join(', ')}, not ${kindOf(value)}`
      return [{ path, message, hint: typeof value === 'string' ? didYouMean(value, choices, hint) : hint }]
    }
    case 'invalid_type': {
      const message = `${subject} must be ${kindWanted(issue.expected)}, not ${kindOf(value)}`
      const quotable = issue.expected === 'string' && typeof value !== 'object'
      return [{ path, message, hint: quotable ? `If you mean it, put it in quotes. ${hint}` : hint }]
    }
    default:
      return [{ path, message: `${subject}: ${issue.message}`, hint }]
  }
}

const NAME_HINT = 'A name starts with a letter, then letters, digits, _ and -, at most 64.'

function unknownKey(key: string, parent: Path): Finding {
  const known = knownKeys(parent)
  const otherwise = known.length > 0 ? `Known here: ${known.join(', ')}.` : 'Remove it.'
  const hint = wellMeant(key, parent) ?? didYouMean(key, known, otherwise)
  const shown = key.length > 64 ? `${key.slice(0, 64)}…` : key
  return { path: [...parent, key], message: `There is no key "${shown}" here`, hint, what: 'key' }
}

/** Good guesses that deserve a better answer than a list of keys. */
function wellMeant(key: string, parent: Path): string | undefined {
  if (key === '<<') return 'Merge keys are not part of YAML 1.2; use an alias for the whole value.'
  if (parent.length === 1 && parent[0] === 'permissions' && key === '*') {
    return 'Permissions here are for all agents already; those of one agent go under agents.NAME.permissions.'
  }
  if (parent[0] === 'models' && /key|token|secret|password/i.test(key)) {
    return 'Keys never stand in this file: put it into an environment variable, and name that with "key_env".'
  }
  return undefined
}

/** Of several forms, the writer was after the one whose outer kind fits; undefined when none does. */
function union(issue: z.core.$ZodIssueInvalidUnion, path: Path, root: unknown): Finding[] | undefined {
  const meant = issue.errors.find((branch) =>
    branch.every((inner) => inner.path.length > 0 || KIND_FITS.has(inner.code)),
  )
  return meant?.flatMap((inner) => findings(inner, [...path, ...(inner.path as Path)], root))
}

const KIND_FITS: ReadonlySet<Issue['code']> = new Set(['too_small', 'too_big', 'unrecognized_keys'])

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

/** Text is shown only when short: a long one may be a secret or a whole file. */
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
