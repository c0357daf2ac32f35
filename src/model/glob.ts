/**
 * Globs for files in a workspace: `*` and `?` within a name, `**` for any number of folders, `{a,b}` for either. Matched
 * without regular expressions, so that no pattern takes exponential time. Names that begin with a dot are names.
 */

/** Each alternative is a list of names; null stands for `**`. */
export interface Glob {
  readonly alternatives: readonly (readonly (string | null)[])[]
  /** It names one file. */
  readonly isLiteral: boolean
}

export type ParsedGlob = { ok: true; glob: Glob } | { ok: false; why: string }

const MAX_LENGTH = 500
const MAX_ALTERNATIVES = 64

export function parseGlob(text: string): ParsedGlob {
  const why = mistakeIn(text)
  if (why !== undefined) return { ok: false, why }
  const expanded = expand(text)
  if (expanded === undefined) return { ok: false, why: `stands for more than ${MAX_ALTERNATIVES} patterns` }
  // A folder stands for all that is in it.
  const alternatives = expanded.map((pattern) =>
    (pattern.endsWith('/') ? `${pattern}**` : pattern)
      .split('/')
      .map((name) => (name === '**' ? null : name)),
  )
  for (const names of alternatives) {
    for (const name of names) {
      if (name === '') return { ok: false, why: 'has an empty part between slashes' }
      if (name === '.' || name === '..') return { ok: false, why: `must not contain "${name}"` }
      if (name?.includes('**'))
        return { ok: false, why: 'may have "**" only as a whole part, as in data/**/x' }
    }
  }
  return {
    ok: true,
    glob: { alternatives, isLiteral: alternatives.length === 1 && !/[*?]/.test(expanded[0]!) },
  }
}

function mistakeIn(text: string): string | undefined {
  if (text === '') return 'is empty'
  if (text.length > MAX_LENGTH) return `is longer than ${MAX_LENGTH} characters`
  if (/[\x00-\x1f\x7f-\x9f\u2028\u2029]/.test(text)) return 'has control characters'
  if (text.includes('\\')) return 'has a backslash; folders are separated by /'
  if (/[[\]]/.test(text)) return 'has brackets, which are not understood; ? stands for any one character'
  if (/^[A-Za-z]:/.test(text) || text.startsWith('/')) return 'must be relative'
  let open = 0
  for (const letter of text) {
    if (letter === '{') open++
    if (letter === '}') open--
    if (open < 0 || open > 1) return 'has braces that do not fit together'
  }
  return open === 0 ? undefined : 'has braces that do not fit together'
}

/** Braces do not nest, so each is taken in turn. */
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

/** Whether what matches may lie at that path, or in it as a folder. */
export function leadsThrough({ alternatives }: Glob, path: string): boolean {
  const names = path.split('/')
  return alternatives.some((pattern) =>
    pattern.some((_, end) =>
      matchLists(pattern.slice(0, end + 1), names, (part) => part === null, matchName),
    ),
  )
}

/** Whether some path could match both. */
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

/** Greedy with one point to come back to: a later wildcard never needs an earlier one to be taken back. */
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

/** Row by row over both patterns: whether what is left of each can be the same text. */
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
