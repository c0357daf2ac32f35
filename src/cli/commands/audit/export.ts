import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import type { AuditEntryAnswer } from '../../../api/contract.ts'
import {
  isPublic,
  openPublicChain,
  type PublicHead,
  publicLine,
  publicTitle,
} from '../../../audit/public-trail.ts'
import { PUBLIC_FORMATS } from '../../../audit/public-trail-file.ts'
import { formatLine } from '../../../audit/readable-line.ts'
import { streamAudit, toEntry } from '../../../audit/store.ts'
import type { ChainMark } from '../../../audit/verify.ts'
import { onlineOrOffline } from '../../connection/client.ts'
import type { TeamLocation } from '../../connection/connection.ts'
import { noJson, usage } from '../../errors.ts'
import { counted, showWorking } from '../../output/layout.ts'
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
      const option = format === 'html' ? '--format html' : '--repository'
      throw usage(`${option} needs --public`, `Add --public, or drop ${option}.`)
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

/** Writes all entries and, in jsonl, the last line that makes truncation visible. */
async function writeEntries(
  location: TeamLocation,
  format: string,
  write: (text: string) => void,
): Promise<ExportEnd> {
  const end: ExportEnd = { head: null, count: 0 }
  // `covered` is exactly what the hash covers.
  await eachEntry(location, ({ line, ...covered }) => {
    const { chain, seq, hash } = covered
    end.head = { chain, seq, hash }
    end.count += 1
    write(`${format === 'text' ? line : JSON.stringify(covered)}\n`)
  })
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
  const { begin, line, end } = PUBLIC_FORMATS[format]!
  const chain = openPublicChain(title)
  write(begin(title))
  await eachEntry(
    location,
    (entry) => {
      if (isPublic(entry, repository)) write(line(chain.add(publicLine(entry))))
    },
    { class: 'public' },
  )
  const head = chain.head()
  write(end(head))
  return { head, count: head.n }
}

/** Reads from the running service or, if none is running, from the store. */
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
    async ({ store }) => {
      for await (const row of streamAudit(store, query)) {
        const entry = toEntry(row)
        take({ ...entry, data: entry.data ?? {}, line: formatLine(entry) })
      }
    },
  )
}

/** Writes to a temporary file and renames it once it is on disk, so that an incomplete file never looks like an export. */
async function writeWhole(
  file: string,
  fill: (write: (text: string) => void) => Promise<ExportTotals>,
): Promise<ExportTotals> {
  const temporary = `${file}.${process.pid}.part`
  const working = showWorking('exporting')
  try {
    const descriptor = openSync(temporary, 'wx', 0o600)
    const end = await fill((text) => writeFileSync(descriptor, text))
    fsyncSync(descriptor)
    closeSync(descriptor)
    renameSync(temporary, file)
    return end
  } catch (error) {
    const fault = error as NodeJS.ErrnoException
    // A temporary file that already exists isn't ours: name it in the error, and don't remove it.
    if (fault.code !== 'EEXIST') {
      rmSync(temporary, { force: true })
      if (fault.path === temporary) fault.path = file
    }
    throw error
  } finally {
    working.end()
  }
}
