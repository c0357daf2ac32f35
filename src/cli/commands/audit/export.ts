import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import type { AuditEntryAnswer } from '../../../api/contract.ts'
import { type AuditLine, formatLine, parseLine } from '../../../audit/line.ts'
import {
  isPublic,
  openPublicChain,
  PUBLIC_FORMAT,
  type PublicHead,
  type PublicLine,
  publicLine,
  publicTitle,
} from '../../../audit/public-trail.ts'
import { streamAudit, toEntry } from '../../../audit/store.ts'
import type { ChainMark } from '../../../audit/verify.ts'
import { AppError } from '../../../base/errors.ts'
import type { Store } from '../../../store/store.ts'
import { onlineOrOffline } from '../../connection/client.ts'
import type { TeamLocation } from '../../connection/connection.ts'
import { noJson } from '../../errors.ts'
import { counted, showProgress } from '../../output/layout.ts'
import { complain, printJson, printRaw } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

const FORMATS = ['jsonl', 'text', 'html']

export const verb: Verb = {
  name: 'audit export',
  summary: 'export the audit log, to keep it or verify it elsewhere',
  options: [
    {
      name: 'output',
      short: 'o',
      value: 'FILE',
      summary: 'write to this file; it appears only when it is complete',
    },
    {
      name: 'format',
      value: 'FORMAT',
      summary:
        'jsonl (default; can be verified) or text; with --public also html, and all three can be verified',
      choices: FORMATS,
    },
    {
      name: 'public',
      summary: 'only public entries: what agents did in repositories, with its own hash chain',
    },
    { name: 'repository', value: 'OWNER/NAME', summary: 'with --public: only this repository' },
  ],
  examples: [
    'orc audit export -o audit.jsonl',
    'orc audit export --format text | less',
    'orc audit export --public --format html -o trail.html',
  ],

  async run({ location, option, flag, json }) {
    const format = option('format') ?? 'jsonl'
    const file = option('output')
    const repository = option('repository')
    if (!flag('public') && (format === 'html' || repository !== undefined)) {
      throw new AppError('USAGE', `${format === 'html' ? '--format html' : '--repository'} needs --public`, {
        hint: `Add --public, or drop ${format === 'html' ? '--format html' : '--repository'}.`,
      })
    }
    if (json && file === undefined && format === 'text')
      throw noJson('audit export --format text', 'Drop one of --json and --format text, or add -o FILE.')
    const write = (take: (text: string) => void): Promise<ExportTotals> =>
      flag('public') ? writePublic(location, format, repository, take) : writeEntries(location, format, take)
    if (file === undefined) {
      await write(printRaw)
      return 0
    }
    const { head, count } = await writeWhole(file, write)
    if (json) printJson({ file, format, count, head })
    else if (flag('public')) complain(`${counted(count, 'line', 'lines')} in ${file}`)
    else complain(`${counted(count, 'entry', 'entries')} in ${file}`)
    return 0
  },
}

/** The last line of an export. In a truncated file it is missing or doesn't match the entries. */
export interface ExportEnd {
  head: (ChainMark & { chain: string }) | null
  count: number
}

/** Exports exactly the fields that the hash covers. */
function exportLine({ line: _, ...covered }: AuditEntryAnswer): string {
  return JSON.stringify(covered)
}

/** Collects the last line of an export. */
function openExportEnd() {
  const end: ExportEnd = { head: null, count: 0 }
  return {
    add({ chain, seq, hash }: AuditEntryAnswer) {
      end.head = { chain, seq, hash }
      end.count += 1
    },
    end: (): ExportEnd => end,
  }
}

/** Writes all entries and, in jsonl, the last line that makes truncation visible. */
async function writeEntries(
  location: TeamLocation,
  format: string,
  write: (text: string) => void,
): Promise<ExportEnd> {
  const progress = openExportEnd()
  await eachEntry(location, (entry) => {
    progress.add(entry)
    write(`${format === 'text' ? entry.line : exportLine(entry)}\n`)
  })
  const end = progress.end()
  if (format !== 'text') write(`${JSON.stringify(end)}\n`)
  return end
}

type ExportTotals = ExportEnd | { head: PublicHead; count: number }

/** Writes the public lines and the head of their hash chain. */
async function writePublic(
  location: TeamLocation,
  format: string,
  repository: string | undefined,
  write: (text: string) => void,
): Promise<ExportTotals> {
  const title = publicTitle(repository)
  const form = PUBLIC_FORMS[format]!
  const chain = openPublicChain(title)
  write(form.begin(title))
  await eachEntry(
    location,
    (entry) => {
      if (isPublic(entry, repository)) write(form.line(chain.add(publicLine(entry))))
    },
    { class: 'public' },
  )
  const head = chain.head()
  write(form.end(title, head))
  return { head, count: head.n }
}

/** Reads from the running service, or from the store while none runs. */
async function eachEntry(
  location: TeamLocation,
  take: (entry: AuditEntryAnswer) => void,
  query: { class?: 'public' } = {},
): Promise<void> {
  await onlineOrOffline(
    location,
    async (client) => {
      for await (const entry of client.audit(query)) take(entry)
    },
    ({ store }) => eachStored(store, take, query),
  )
}

async function eachStored(
  store: Store,
  take: (entry: AuditEntryAnswer) => void,
  query: { class?: 'public' },
): Promise<void> {
  for await (const row of streamAudit(store, query)) {
    const entry = toEntry(row)
    take({ ...entry, data: entry.data ?? {}, line: formatLine(entry) })
  }
}

/** Writes to a temporary file and renames it once it is on disk, so that an incomplete file never looks like an export. */
async function writeWhole(
  file: string,
  fill: (write: (text: string) => void) => Promise<ExportTotals>,
): Promise<ExportTotals> {
  const temporary = `${file}.${process.pid}.part`
  const progress = showProgress('entries')
  let count = 0
  try {
    const descriptor = openSync(temporary, 'wx', 0o600)
    const end = await fill((text) => {
      writeFileSync(descriptor, text)
      count += 1
      progress.update(count)
    })
    fsyncSync(descriptor)
    closeSync(descriptor)
    renameSync(temporary, file)
    return end
  } catch (error) {
    throw aboutFile(error, temporary, file)
  } finally {
    progress.end()
  }
}

/** Removes the temporary file and names the user's file in the error. */
function aboutFile(error: unknown, temporary: string, file: string): unknown {
  const fault = error as NodeJS.ErrnoException
  const isOurs = fault.code !== 'EEXIST'
  if (isOurs) rmSync(temporary, { force: true })
  if (isOurs && fault.path === temporary) fault.path = file
  return error
}

/**
 * A file format of the public trail. Each begins with the title and ends with the head, which makes truncation visible.
 * Verification regenerates the file, so the fixed texts must never change.
 */
interface PublicForm {
  begin(title: string): string
  line(line: PublicLine): string
  end(title: string, head: PublicHead): string
}

const HOW =
  "each hash is sha256 over the hash before it, a line end, the line, and a line end; the first one follows that of the title with a line end. 'orc audit verify FILE' does the same."

const text: PublicForm = {
  begin: (title) => `# ${title}\n`,
  line: ({ line }) => `${line}\n`,
  end: (_, { n, hash }) => `# lines ${n} sha256 ${hash}\n`,
}

const UNREADABLE: AuditLine = { at: '', type: '', actor: '', text: '' }

const jsonl: PublicForm = {
  begin: (title) => `${JSON.stringify({ format: title, how: HOW })}\n`,
  line({ n, line, hash }) {
    // A tampered line may not parse; it is written unchanged and fails by its hash.
    const { at, actor, subject, type, text: body, confidence } = parseLine(line) ?? UNREADABLE
    const parts = { at, from: actor, to: subject, kind: type.toUpperCase(), text: body, confidence }
    return `${JSON.stringify({ n, ...parts, line, hash })}\n`
  },
  end: (_, head) => `${JSON.stringify({ head })}\n`,
}

const STYLE = `body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1b1f24;background:#fff}
ol{padding-left:3.5rem}li{padding:.15rem 0;border-bottom:1px solid #e5e8eb}li::marker{color:#59636e}
code{font:13px/1.5 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere}footer,header p{color:#59636e}
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}li{border-color:#2b323b}footer,header p,li::marker{color:#9198a1}}`

/** A self-contained file without scripts, for any web server. */
const html: PublicForm = {
  begin: (title) =>
    `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="format" content="${escapeHtml(title)}">
<title>Public audit trail</title><style>${STYLE}</style></head><body>
<header><h1>Public audit trail</h1><p>What the agents were asked, proposed and did${escapeHtml(placeOf(title))}, oldest first. Agents can be wrong.</p></header>
<ol>
`,
  line: ({ n, line, hash }) => `<li id="n${n}" data-hash="${hash}"><code>${escapeHtml(line)}</code></li>\n`,
  end: (_, { n, hash }) =>
    `</ol>\n<footer><p>Lines: <span id="lines">${n}</span>. Head: <code id="head">${hash}</code>.</p><p>To check it: ${escapeHtml(HOW)}</p></footer>\n</body></html>\n`,
}

export const PUBLIC_FORMS: Readonly<Record<string, PublicForm>> = { text, jsonl, html }

function placeOf(title: string): string {
  const repository = title.slice(PUBLIC_FORMAT.length).trim()
  return repository === '' ? '' : ` in ${repository}`
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

function escapeHtml(plainText: string): string {
  return plainText.replace(/[&<>"]/g, (character) => ENTITIES[character]!)
}

export function unescapeHtml(plainText: string): string {
  return plainText.replace(
    /&(?:amp|lt|gt|quot);/g,
    (entity) => Object.entries(ENTITIES).find(([, written]) => written === entity)![0],
  )
}
