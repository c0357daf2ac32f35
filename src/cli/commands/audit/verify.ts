import { createReadStream } from 'node:fs'
import type { AnswerOf, AuditEntryAnswer } from '../../../api/contract.ts'
import type { PublicHead } from '../../../audit/public-trail.ts'
import {
  isPublicTrail,
  type PublicTrailVerification,
  verifyPublicTrail,
} from '../../../audit/public-trail-file.ts'
import { type ChainMark, type StoredEntry, verifyChain } from '../../../audit/verify.ts'
import { AppError } from '../../../base/errors.ts'
import { readLines } from '../../../client/transport.ts'
import { onlineOrOffline } from '../../connection/client.ts'
import { exitCode, usage } from '../../errors.ts'
import { counted, showWorking } from '../../output/layout.ts'
import { complain, paint, plain, print, printJson } from '../../output/print.ts'
import type { Invocation, Verb } from '../../verb.ts'
import type { ExportEnd } from './export.ts'

export const verb: Verb = {
  name: 'audit verify',
  summary: 'check that no entry was changed, removed, reordered or truncated',
  details:
    'Asks the running service or, if none is running, reads the store; also compares every message with its entry.\n' +
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
    const verdict = await verify(invocation).finally(working.end)
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

async function verify({
  words,
  location,
  option,
}: Invocation): Promise<ExportVerification | PublicTrailVerification> {
  const [file] = words
  const older = option('extends')
  if (file !== undefined && isPublicTrail(await firstLine(file)))
    return await verifyPublicTrail(linesOf(file), older === undefined ? undefined : await headOf(older))
  if (older !== undefined) {
    throw usage('--extends needs a public trail', 'orc audit export --public writes one.')
  }
  if (file !== undefined) return await verifyExport(file)
  return await onlineOrOffline<ExportVerification>(
    location,
    (client) => client.verifyAudit(),
    ({ verifyAudit }) => verifyAudit(),
  )
}

/** The head of an older copy, which must itself be valid. */
async function headOf(older: string): Promise<PublicHead> {
  const head = /^(\d{1,15}):([0-9a-f]{64})$/.exec(older)
  if (head !== null) return { n: Number(head[1]), hash: head[2]! }
  const verdict = await verifyPublicTrail(linesOf(older))
  if (verdict.head !== undefined) return verdict.head
  throw new AppError('INVALID_REQUEST', `${older}: ${verdict.message}`)
}

function linesOf(file: string): AsyncGenerator<string> {
  return readLines(createReadStream(file, 'utf8'))
}

async function firstLine(file: string): Promise<string> {
  for await (const line of linesOf(file)) return line
  return ''
}

type ExportVerification = AnswerOf<'auditVerify'> & { head?: ChainMark }

/** Checks an export entry by entry, without loading it into memory. */
async function verifyExport(file: string): Promise<ExportVerification> {
  const line = await firstLine(file)
  const first = parseExportLine(line)
  if (first === undefined && line !== '') {
    throw new AppError('INVALID_REQUEST', `${file}: line 1 is not an audit entry`, {
      hint: 'Only exports in jsonl format can be verified: orc audit export -o audit.jsonl',
    })
  }
  const { chain, seq: begin } = first !== undefined && 'seq' in first ? first : { chain: '', seq: 1 }
  if (begin > 1) {
    const message = `The file begins with entry ${begin}; only a complete export can be verified`
    return { ok: false, count: 0, seq: 1, problem: 'missing', message }
  }
  let end: ExportEnd | undefined
  let broken: string | undefined

  async function* entries(): AsyncGenerator<StoredEntry> {
    let number = 0
    for await (const line of linesOf(file)) {
      number += 1
      if (line.trim() === '') continue
      const read = parseExportLine(line)
      if (end !== undefined) broken = `Line ${number} comes after the end of the export`
      else if (read === undefined)
        broken = `Line ${number} is not an audit entry: the file was truncated or changed there`
      else if ('seq' in read) yield read
      else end = read
      if (broken !== undefined) return
    }
  }

  const verdict = await verifyChain(entries(), { chain })
  if (!verdict.ok) return { ...verdict, count: Math.max(0, verdict.seq - 1) }
  const { count, head } = verdict
  const problem =
    broken ?? (end === undefined ? NO_END : fits(end, { ...head, chain }) ? undefined : OTHER_END)
  if (problem !== undefined) return { ok: false, count, seq: count + 1, problem: 'cut_off', message: problem }
  if (count === 0) return { ok: true, count, message: 'The export has no entries' }
  return { ok: true, count, head, message: `${counted(count, 'entry', 'entries')} verified, none changed` }
}

const NO_END = 'The file is truncated or not a complete export: its last line, with the head, is missing'
const OTHER_END =
  'The file is truncated or not a complete export: the head in its last line does not match its entries'

function fits({ head, count }: ExportEnd, last: ChainMark & { chain: string }): boolean {
  if (count !== last.seq) return false
  if (head === null) return count === 0
  return head.chain === last.chain && head.seq === last.seq && head.hash === last.hash
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
