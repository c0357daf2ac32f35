/**
 * Globs for files in a workspace: `*` and `?` within a name, `**` for any number of folders, `{a,b}` for either. They match names
 * that start with a dot. Agents write patterns and file names, so matching must not backtrack: picomatch and Node's `matchesGlob` build regular
 * expressions, and `*a*a*a*ab` on a name of 200 letters takes them seconds. Neither can tell whether two globs have a path in common.
 */
import type { Result } from './result.ts'

/** Each alternative is a list of names; null stands for `**`. */
export interface Glob {
  readonly alternatives: readonly (readonly (string | null)[])[]
  /** Without wildcards: names one file or folder. */
  readonly isLiteral: boolean
}

const MAX_LENGTH = 500
const MAX_ALTERNATIVES = 64

/** The error continues a sentence that starts with the pattern: `"a//b" has an empty part between slashes`. */
export function parseGlob(text: string): Result<Glob, string> {
  const error = mistakeIn(text)
  if (error !== undefined) return { ok: false, error }
  const expanded = expand(text)
  if (expanded === undefined) return { ok: false, error: `expands to more than ${MAX_ALTERNATIVES} patterns` }
  // A folder stands for everything in it.
  const alternatives = expanded.map((pattern) =>
    (pattern.endsWith('/') ? `${pattern}**` : pattern)
      .split('/')
      .map((name) => (name === '**' ? null : name)),
  )
  for (const names of alternatives) {
    for (const name of names) {
      if (name === '') return { ok: false, error: 'has an empty part between slashes' }
      if (name === '.' || name === '..') return { ok: false, error: `must not contain "${name}"` }
      if (name?.includes('**'))
        return { ok: false, error: 'must have "**" only as a whole part, as in data/**/x' }
    }
  }
  return {
    ok: true,
    value: { alternatives, isLiteral: alternatives.length === 1 && !/[*?]/.test(expanded[0]!) },
  }
}

function mistakeIn(text: string): string | undefined {
  if (text === '') return 'is empty'
  if (text.length > MAX_LENGTH) return `is longer than ${MAX_LENGTH} characters`
  if (/[\x00-\x1f\x7f-\x9f\u2028\u2029]/.test(text)) return 'has control characters'
  if (text.includes('\\')) return 'has a backslash; separate folders with /'
  if (/[[\]]/.test(text)) return 'has brackets, which are not supported; use ? for any one character'
  if (/^[A-Za-z]:/.test(text) || text.startsWith('/')) return 'must be relative'
  let open = 0
  for (const letter of text) {
    if (letter === '{') open++
    if (letter === '}') open--
    if (open < 0 || open > 1) return 'has unbalanced or nested braces'
  }
  return open === 0 ? undefined : 'has unbalanced or nested braces'
}

/** Braces do not nest, so each is expanded in turn. */
function expand(text: string): string[] | undefined {
  let patterns = ['']
  for (const piece of text.split(/(\{[^}]*\})/)) {
    const choices = piece.startsWith('{') ? piece.slice(1, -1).split(',') : [piece]
    if (patterns.length * choices.length > MAX_ALTERNATIVES) return undefined
    patterns = patterns.flatMap((before) => choices.map((choice) => before + choice))
  }
  return patterns
}

export function matchesGlob({ alternatives }: Glob, path: string): boolean {
  const names = path.split('/')
  return alternatives.some((pattern) => matchLists(pattern, names, (part) => part === null, matchName))
}

/** Whether a path that matches may be this path, or lie inside it as a folder. */
export function leadsThrough({ alternatives }: Glob, path: string): boolean {
  const names = path.split('/')
  return alternatives.some((pattern) =>
    pattern.some((_, end) =>
      matchLists(pattern.slice(0, end + 1), names, (part) => part === null, matchName),
    ),
  )
}

/** Whether some path matches both globs. */
export function globsMeet(a: Glob, b: Glob): boolean {
  return a.alternatives.some((one) => b.alternatives.some((other) => listsMeet(one, other)))
}

function matchName(pattern: string | null, name: string): boolean {
  return matchLists(
    [...pattern!],
    [...name],
    (letter) => letter === '*',
    (letter, other) => letter === '?' || letter === other,
  )
}

/** Backtracks to the last wildcard only: a later wildcard never requires an earlier one to match more. */
function matchLists<P, T>(
  pattern: readonly P[],
  text: readonly T[],
  isMany: (part: P) => boolean,
  fits: (part: P, item: T) => boolean,
): boolean {
  let [p, t, many, resume] = [0, 0, -1, 0]
  while (t < text.length) {
    if (p < pattern.length && isMany(pattern[p]!)) {
      many = p++
      resume = t
    } else if (p < pattern.length && fits(pattern[p]!, text[t]!)) {
      p++
      t++
    } else if (many >= 0) {
      p = many + 1
      t = ++resume
    } else return false
  }
  while (p < pattern.length && isMany(pattern[p]!)) p++
  return p === pattern.length
}

const listsMeet = (a: readonly (string | null)[], b: readonly (string | null)[]) =>
  meet(
    a,
    b,
    (part) => part === null,
    (one, other) =>
      one === other ||
      meet(
        [...one!],
        [...other!],
        (letter) => letter === '*',
        (x, y) => x === y || x === '?' || y === '?',
      ),
  )

/** Dynamic programming: whether the rest of `a` from i and the rest of `b` from j can match the same text. */
function meet<P>(
  a: readonly P[],
  b: readonly P[],
  isMany: (part: P) => boolean,
  fit: (x: P, y: P) => boolean,
): boolean {
  let below: boolean[] = []
  for (let i = a.length; i >= 0; i--) {
    const row: boolean[] = new Array(b.length + 1)
    for (let j = b.length; j >= 0; j--) {
      if (i === a.length && j === b.length) row[j] = true
      else if (i < a.length && isMany(a[i]!)) row[j] = below[j]! || (j < b.length && row[j + 1]!)
      else if (j < b.length && isMany(b[j]!)) row[j] = row[j + 1]! || (i < a.length && below[j]!)
      else row[j] = i < a.length && j < b.length && below[j + 1]! && fit(a[i]!, b[j]!)
    }
    below = row
  }
  return below[0]!
}
