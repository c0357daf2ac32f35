import { type Glob, leadsThrough, matchesGlob, parseGlob } from '../base/glob.ts'
import { failed, problem, type WorkspaceProblem, type WorkspaceResult } from './problem.ts'
import { showName } from './safe-fs/entry-name.ts'

/** A pattern of a plan for files below outbox/. */
export interface OutputPattern {
  readonly pattern: string
  /** `segments` is a path below outbox/. */
  takes(segments: readonly string[]): boolean
  /** True if the path, or something below it, may match. */
  leadsThrough(segments: readonly string[]): boolean
}

/** Everything that an agent hands on, without the remains of a failure (S4.11). */
const ALL = 'outbox/**'
const LEFT_BEHIND = new Set(['error_report.md', 'partial'])

/** With or without `outbox/` in front, as in the seed or as people write it. */
export function parseOutputs(outputs: readonly string[]): WorkspaceResult<OutputPattern[]> {
  const patterns: OutputPattern[] = []
  const problems: WorkspaceProblem[] = []
  for (const pattern of outputs) {
    const parsed = pattern === '' ? parseGlob('') : parseGlob(fromOutbox(pattern))
    if (parsed.ok) patterns.push(patternOf(pattern, parsed.value))
    else problems.push(problem('bad_path', `The pattern ${showName(pattern)}`, parsed.error))
  }
  return problems.length > 0 ? failed(...problems) : { ok: true, value: patterns }
}

function fromOutbox(pattern: string): string {
  const path = pattern.replace(/^\.\//, '')
  return path.startsWith('outbox/') ? path : `outbox/${path}`
}

function patternOf(pattern: string, glob: Glob): OutputPattern {
  const takes = takesBy(glob, fromOutbox(pattern))
  return {
    pattern,
    takes,
    leadsThrough: (segments) => takes(segments) || leadsThrough(glob, `outbox/${segments.join('/')}`),
  }
}

function takesBy(glob: Glob, pattern: string): OutputPattern['takes'] {
  if (pattern === ALL || pattern === 'outbox/') return (segments) => !LEFT_BEHIND.has(segments[0]!)
  const takes = (segments: readonly string[]) => matchesGlob(glob, `outbox/${segments.join('/')}`)
  // To name a folder is to name all that is in it.
  return glob.isLiteral ? (segments) => segments.some((_, end) => takes(segments.slice(0, end + 1))) : takes
}
