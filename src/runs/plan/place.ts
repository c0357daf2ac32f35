import { type Glob, parseGlob } from '../../base/glob.ts'

/** Paths inside a workspace, as a plan writes them. */
export type ParsedPlace = { ok: true; path: string } | { ok: false; why: string; hint: string }

/** The orchestrator's own files in an inbox (S4.5, S4.13, C21). */
const RESERVED: ReadonlySet<string> = new Set(['instructions.md', 'dependencies.json', 'references.json'])

const INBOX_HINT = 'It must be inside the inbox, such as inbox/source_data/.'

/** A file or folder in the inbox: one that is named, without `..` and wildcards. */
export function parseInboxPlace(text: string): ParsedPlace {
  const path = text.replace(/^\.\//, '').replace(/\/$/, '')
  const parsed = parseGlob(path)
  if (!parsed.ok) return { ok: false, why: parsed.error, hint: INBOX_HINT }
  if (!parsed.value.isLiteral) return { ok: false, why: 'must not have wildcards', hint: INBOX_HINT }
  const [root, ...inside] = path.split('/')
  if (root !== 'inbox') return { ok: false, why: 'is outside the inbox', hint: INBOX_HINT }
  if (inside.length === 1 && RESERVED.has(inside[0]!)) {
    return { ok: false, why: 'is a file of the orchestrator', hint: 'Take another name.' }
  }
  return { ok: true, path }
}

export type ParsedOutput = { ok: true; path: string; glob: Glob } | { ok: false; why: string; hint: string }

const OUTPUT_HINT = 'Globs of files in the outbox: outbox/report.md, outbox/data/*.csv, outbox/**.'

/** A glob of files in the outbox; `outbox/` may be left out. */
export function parseOutput(text: string): ParsedOutput {
  const written = text.replace(/^\.\//, '')
  const root = written.split('/')[0]!
  if (root === 'inbox' || root === 'workspace') {
    return { ok: false, why: `is in ${root}/, which is not handed on`, hint: OUTPUT_HINT }
  }
  const path = root !== 'outbox' ? `outbox/${written}` : written === 'outbox' ? 'outbox/' : written
  const whole = path.endsWith('/') ? `${path}**` : path
  const parsed = parseGlob(whole)
  return parsed.ok
    ? { ok: true, path: whole, glob: parsed.value }
    : { ok: false, why: parsed.error, hint: OUTPUT_HINT }
}

/** All that an agent hands on. What it left behind in failing is not among it (S4.11). */
export const ALL_OUTPUTS = 'outbox/**'

/** What an agent may make without declaring it (S4.7, S4.8). */
export const UNDECLARED: ReadonlySet<string> = new Set(
  ['summary.md', 'changelog.md', 'issues.md', 'metadata.json'].map((file) => `outbox/${file}`),
)
