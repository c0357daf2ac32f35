import { createHash } from 'node:crypto'
import { closeSync, createReadStream, openSync, readSync } from 'node:fs'
import type { AnswerOf, AuditEntryAnswer } from '../../../api/contract.ts'
import { openPublicChain, PUBLIC_FORMAT, type PublicHead } from '../../../audit/public-trail.ts'
import { type ChainMark, type StoredEntry, verifyChain } from '../../../audit/verify.ts'
import { AppError } from '../../../base/errors.ts'
import { readLines } from '../../../client/transport.ts'
import { onlineOrOffline } from '../../connection/client.ts'
import { exitCode } from '../../errors.ts'
import { counted, showWorking } from '../../output/layout.ts'
import { complain, paint, plain, print, printJson } from '../../output/print.ts'
import type { Invocation, Verb } from '../../verb.ts'
import { type ExportEnd, PUBLIC_FORMS, unescapeHtml } from './export.ts'

export const verb: Verb = {
  name: 'audit verify',
  summary: 'check that no entry was changed, removed, reordered or truncated',
  details:
    'Asks the running service, or reads the store while none runs; also compares every message with its entry.\n' +
    'With FILE it checks a file that `orc audit export` wrote, including the head in its last line. Somebody who can\n' +
    'write the file could truncate it and rewrite that line, so compare the printed head with another copy.\n' +
    'Public trails (`orc audit export --public`, any format) need no service and no team. --extends also checks that an\n' +
    'older copy, or a head you saved (N:HASH), is the beginning of the file.',
  arguments: [{ name: 'FILE', optional: true }],
  options: [
    {
      name: 'extends',
      value: 'OLD',
      summary: 'for a public trail: check that this older file, or head N:HASH, is its beginning',
    },
  ],
  examples: [
    'orc audit verify',
    'orc audit verify audit.jsonl',
    'orc audit verify trail.html --extends trail-may.html',
  ],

  async run(invocation) {
    const working = showWorking('checking the audit')
    const verdict = await verdictOf(invocation).finally(working.end)
    if (invocation.json) printJson(verdict)
    else if (verdict.ok) {
      print(`${paint('green', 'ok')}  ${plain(verdict.message)}`)
      const { head } = verdict
      if (head !== undefined)
        print(`head: ${'n' in head ? `line ${head.n}` : `entry ${head.seq}`}, ${head.hash}`)
    } else complain(`${paint('red', 'bad', 'err')}  ${plain(verdict.message)}`)
    return exitCode(verdict.ok ? 'ok' : 'error')
  },
}

async function verdictOf({ words, location, option }: Invocation): Promise<ExportVerdict | PublicVerdict> {
  const [file] = words
  const older = option('extends')
  if (file !== undefined && isPublicFile(firstLine(file)))
    return await verifyPublic(
      createReadStream(file, 'utf8'),
      older === undefined ? undefined : await headOf(older),
    )
  if (older !== undefined) {
    throw new AppError('USAGE', '--extends needs a public trail', {
      hint: 'orc audit export --public writes one.',
    })
  }
  if (file !== undefined) return await verifyExport(createReadStream(file, 'utf8'))
  return await onlineOrOffline<ExportVerdict>(
    location,
    (client) => client.verifyAudit(),
    ({ verifyAudit }) => verifyAudit(),
  )
}

/** The head of an older copy, which must itself be valid. */
async function headOf(older: string): Promise<PublicHead> {
  const head = /^(\d{1,15}):([0-9a-f]{64})$/.exec(older)
  if (head !== null) return { n: Number(head[1]), hash: head[2]! }
  const verdict = await verifyPublic(createReadStream(older, 'utf8'))
  if (verdict.head !== undefined) return verdict.head
  throw new AppError('INVALID_REQUEST', `${older}: ${verdict.message}`)
}

function firstLine(file: string): string {
  const descriptor = openSync(file, 'r')
  try {
    const bytes = Buffer.alloc(400)
    return bytes.toString('utf8', 0, readSync(descriptor, bytes)).split('\n')[0]!
  } finally {
    closeSync(descriptor)
  }
}

/** A parsed line of a public trail, in any of its formats. */
type Piece =
  | { readonly title: string }
  | { readonly line: string; readonly n?: number; readonly hash?: string }
  | { readonly head: PublicHead }

interface PublicVerdict {
  ok: boolean
  count: number
  message: string
  head?: PublicHead
  /** The first wrong line. */
  seq?: number
}

/** Recognizes a public trail by its first line. */
export function isPublicFile(first: string): boolean {
  return first.startsWith('<!doctype html>') || first.includes(PUBLIC_FORMAT)
}

type FormName = 'text' | 'jsonl' | 'html'

/**
 * Recomputes the hash chain of a public trail and regenerates the whole file from it, so that any change or addition
 * shows. `known` is an earlier head that must be part of the chain.
 */
export async function verifyPublic(file: AsyncIterable<string>, known?: PublicHead): Promise<PublicVerdict> {
  const asRead = createHash('sha256')
  const asWritten = createHash('sha256')
  let form: FormName | undefined
  let title: string | undefined
  let chain: ReturnType<typeof openPublicChain> | undefined
  let end: PublicHead | undefined
  let isKnown = known === undefined
  for await (const line of readLines(file)) {
    asRead.update(`${line}\n`)
    form ??= formOf(line)
    const piece = READERS[form](line)
    if (piece === undefined) continue
    const write = PUBLIC_FORMS[form]!
    if ('title' in piece) {
      if (chain !== undefined) return wrong(chain.head().n + 1, 'The trail begins a second time')
      title = piece.title
      chain = openPublicChain(title)
      asWritten.update(write.begin(title))
      if (known?.n === 0) isKnown = known.hash === chain.head().hash
      continue
    }
    if (chain === undefined) return wrong(1, 'The file does not begin like a public trail')
    if (end !== undefined) return wrong(chain.head().n + 1, 'The file continues after the end of the trail')
    if ('head' in piece) {
      end = piece.head
      continue
    }
    const own = chain.add(piece.line)
    const bad = whyWrong(piece, own, known)
    if (bad !== undefined) return wrong(own.n, bad)
    if (known?.n === own.n) isKnown = true
    asWritten.update(write.line(own))
  }
  if (chain === undefined || title === undefined) return wrong(1, 'The file is not a public trail')
  const head = chain.head()
  if (end === undefined)
    return wrong(head.n + 1, 'The file is truncated: its last line, with the head, is missing')
  if (end.n !== head.n || end.hash !== head.hash) {
    return wrong(
      head.n + 1,
      'The file was truncated or changed: the head in its last line does not match its lines',
    )
  }
  if (!isKnown)
    return wrong(head.n + 1, `The trail ends with line ${head.n}, before the head given with --extends`)
  asWritten.update(PUBLIC_FORMS[form!]!.end(title, head))
  if (asRead.digest('hex') !== asWritten.digest('hex'))
    return wrong(head.n + 1, 'The file contains something that is not part of the trail')
  const message = `${counted(head.n, 'line')} verified, none changed`
  return { ok: true, count: head.n, head, message }
}

function wrong(n: number, message: string): PublicVerdict {
  return { ok: false, count: n - 1, seq: n, message }
}

function whyWrong(read: { n?: number; hash?: string }, own: PublicHead, known: PublicHead | undefined) {
  if (read.n !== undefined && read.n !== own.n)
    return `Line ${own.n} is missing or in the wrong position: the file has line ${read.n} there`
  if (read.hash !== undefined && read.hash !== own.hash)
    return `Line ${own.n}, or one before it, was changed: it does not match its hash`
  if (known?.n === own.n && known.hash !== own.hash)
    return `Line ${own.n}, or one before it, was changed: it does not match the head given with --extends`
  return undefined
}

function formOf(first: string): FormName {
  if (first.startsWith('<')) return 'html'
  return first.startsWith('{') ? 'jsonl' : 'text'
}

function fromText(line: string): Piece | undefined {
  if (line === '') return undefined
  const title = /^# (orchub-public-audit-1(?: \S+)?)$/.exec(line)
  if (title !== null) return { title: title[1]! }
  const end = /^# lines (\d+) sha256 ([0-9a-f]{64})$/.exec(line)
  return end === null ? { line } : { head: { n: Number(end[1]), hash: end[2]! } }
}

function fromJson(line: string): Piece | undefined {
  try {
    const { format, head, line: text, n, hash } = JSON.parse(line) as Record<string, unknown>
    if (typeof format === 'string') return { title: format }
    if (typeof text === 'string') return { line: text, n: Number(n), hash: String(hash) }
    const { n: count, hash: last } = (head ?? {}) as Record<string, unknown>
    return { head: { n: Number(count), hash: String(last) } }
  } catch {
    return { line }
  }
}

/** Recognizes only lines in the exact form that this program writes. */
function fromHtml(line: string): Piece | undefined {
  const title = /<meta name="format" content="([^"]*)">/.exec(line)
  if (title !== null) return { title: unescapeHtml(title[1]!) }
  const item = /^<li id="n(\d+)" data-hash="([0-9a-f]{64})"><code>(.*)<\/code><\/li>$/.exec(line)
  if (item !== null) return { n: Number(item[1]), hash: item[2]!, line: unescapeHtml(item[3]!) }
  const end = /<span id="lines">(\d+)<\/span>.*<code id="head">([0-9a-f]{64})<\/code>/.exec(line)
  return end === null
    ? line.startsWith('<li')
      ? { line }
      : undefined
    : { head: { n: Number(end[1]), hash: end[2]! } }
}

const READERS: Readonly<Record<FormName, (line: string) => Piece | undefined>> = {
  text: fromText,
  jsonl: fromJson,
  html: fromHtml,
}

type ExportVerdict = AnswerOf<'auditVerify'> & { head?: ChainMark }

/** Checks an export entry by entry, without loading it into memory. */
async function verifyExport(file: AsyncIterable<string>): Promise<ExportVerdict> {
  const reader = openExportReader(file)
  const entries = reader.entries()
  const first = await entries.next()
  if (first.done === true) {
    return reader.problem() ?? { ok: true, count: 0, message: 'The export has no entries' }
  }
  const { chain, seq } = first.value
  if (seq > 1) {
    const message = `The file begins with entry ${seq}; only a complete export can be verified`
    return { ok: false, count: 0, seq: 1, problem: 'missing', message }
  }
  const verdict = await verifyChain(withFirst(first.value, entries), { chain })
  if (!verdict.ok) return { ...verdict, count: Math.max(0, verdict.seq - 1) }
  const { count, head } = verdict
  const message = `${counted(count, 'entry', 'entries')} verified, none changed`
  return reader.problem({ ...head, chain }) ?? { ok: true, count, head, message }
}

async function* withFirst(first: StoredEntry, rest: AsyncIterable<StoredEntry>): AsyncGenerator<StoredEntry> {
  yield first
  yield* rest
}

/** Yields the entries, then reports whether the last line is present and matches them. */
function openExportReader(file: AsyncIterable<string>) {
  let end: ExportEnd | undefined
  let problem: string | undefined

  async function* entries(): AsyncGenerator<StoredEntry> {
    let number = 0
    for await (const line of readLines(file)) {
      number += 1
      if (line.trim() === '') continue
      if (end !== undefined) {
        problem = `Line ${number} comes after the end of the export`
        return
      }
      const read = parseExportLine(line)
      if (read === undefined) {
        if (number === 1) throw notAnExport()
        problem = `Line ${number} is not an audit entry: the file was truncated or changed there`
        return
      }
      if ('dataJson' in read) yield read
      else end = read
    }
  }

  return {
    entries,
    problem(last?: ChainMark & { chain: string }): ExportVerdict | undefined {
      const count = last?.seq ?? 0
      const message = problem ?? (end === undefined ? NO_END : fits(end, last) ? undefined : OTHER_END)
      return message === undefined
        ? undefined
        : { ok: false, count, seq: count + 1, problem: 'cut_off', message }
    },
  }
}

const NO_END = 'The file is truncated or not a complete export: its last line, with the head, is missing'
const OTHER_END =
  'The file is truncated or not a complete export: the head in its last line does not match its entries'

function fits({ head, count }: ExportEnd, last: (ChainMark & { chain: string }) | undefined): boolean {
  if (last === undefined) return head === null && count === 0
  return head?.chain === last.chain && head.seq === last.seq && head.hash === last.hash && count === last.seq
}

function parseExportLine(line: string): StoredEntry | ExportEnd | undefined {
  try {
    const read = JSON.parse(line) as AuditEntryAnswer | ExportEnd
    if ('head' in read) return read
    if (typeof read.seq !== 'number' || typeof read.chain !== 'string') return undefined
    // JSON.stringify reproduces the hashed text, because it wrote that text.
    return { ...read, dataJson: JSON.stringify(read.data ?? {}) }
  } catch {
    return undefined
  }
}

function notAnExport(): AppError {
  return new AppError('INVALID_REQUEST', 'Line 1 is not an audit entry', {
    hint: 'Only exports in jsonl format can be verified: orc audit export -o audit.jsonl',
  })
}
