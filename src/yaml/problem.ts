/** An error in a document that a person wrote, with its position and a hint how to fix it. Lines and columns count from 1. */
export interface Problem {
  /** 0 when the document did not come from a file. */
  readonly line: number
  readonly column: number
  /** The key in question, such as `rules.forbid[0].to`; empty for the whole file. */
  readonly path: string
  readonly message: string
  readonly hint: string
  /** A part of the line, and the column in it to point at. */
  readonly excerpt?: SourceExcerpt
}

export interface SourceExcerpt {
  readonly text: string
  readonly column: number
}

export type Path = readonly (string | number)[]

/** Finds the position of a key in the source. */
export type Locate = (path: Path, what: 'key' | 'value') => Pick<Problem, 'line' | 'column' | 'excerpt'>

export type Report = (path: Path, message: string, hint: string, what?: 'key' | 'value') => void

export function reportInto(problems: Problem[], locate: Locate): Report {
  return (path, message, hint, what = 'value') => {
    problems.push(problemAt(locate, path, message, hint, what))
  }
}

export function problemAt(
  locate: Locate,
  path: Path,
  message: string,
  hint: string,
  what: 'key' | 'value' = 'value',
): Problem {
  const { excerpt, ...position } = locate(path, what)
  const shown = excerpt !== undefined && !MAY_HOLD_SECRETS.has(path[0]) ? { excerpt } : {}
  return { ...position, path: formatPath(path), message: printable(message), hint: printable(hint), ...shown }
}

export function sortProblems(problems: readonly Problem[]): Problem[] {
  return problems.toSorted((a, b) => a.line - b.line || a.column - b.column)
}

/** Store URLs may hold passwords, and people put API keys beside models: keep both out of logs. */
const MAY_HOLD_SECRETS: ReadonlySet<unknown> = new Set(['store', 'models'])

/** Messages quote keys and names from the file, which must neither flood nor control a terminal. */
function printable(text: string): string {
  const plain = text.replace(/[\x00-\x1f\x7f-\x9f\u2028\u2029]/g, ' ')
  return plain.length > 500 ? `${plain.slice(0, 499)}…` : plain
}

function formatPath(path: Path): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`
    if (!/^[\w-]{1,64}$/.test(part)) return `${text}[${JSON.stringify(part.slice(0, 64))}]`
    return text === '' ? part : `${text}.${part}`
  }, '')
}

const PROBLEMS_SHOWN = 20

/** Formats problems for people: `file:line:column: message`, the line with a caret, and the hint. */
export function formatProblems(problems: readonly Problem[], file = 'orc.yaml'): string {
  const shown = problems.slice(0, PROBLEMS_SHOWN).map((problem) => formatProblem(problem, file))
  const rest = problems.length - shown.length
  return [...shown, ...(rest > 0 ? [`… and ${rest} more`] : [])].join('\n\n')
}

function formatProblem({ line, column, path, message, hint, excerpt }: Problem, file: string): string {
  const position = line > 0 ? `${file}:${line}:${column}: ` : ''
  const subject = path === '' || message.includes(path) ? '' : `${path}: `
  const lines = [`${position}${subject}${message}`]
  if (excerpt !== undefined) {
    const gutter = String(line)
    lines.push(`  ${gutter} | ${excerpt.text}`)
    lines.push(`  ${' '.repeat(gutter.length)} | ${' '.repeat(excerpt.column - 1)}^`)
  }
  lines.push(`  hint: ${hint}`)
  return lines.join('\n')
}
