import type { AnswerOf, AuditEntryAnswer } from '../../../api/contract.ts'
import { type ChainMark, type StoredEntry, verifyChain } from '../../../audit/verify.ts'
import { AppError } from '../../../base/errors.ts'
import { readLines } from '../../../client/lines.ts'
import { counted } from '../../output/layout.ts'

/** The last line of an export. In a truncated file it is missing or doesn't match the entries. */
export interface ExportEnd {
  head: (ChainMark & { chain: string }) | null
  count: number
}

/** Exports exactly the fields that the hash covers. */
export function exportLine({ line: _, ...covered }: AuditEntryAnswer): string {
  return JSON.stringify(covered)
}

/** Collects the last line of an export. */
export function openExportEnd() {
  const end: ExportEnd = { head: null, count: 0 }
  return {
    add({ chain, seq, hash }: AuditEntryAnswer) {
      end.head = { chain, seq, hash }
      end.count += 1
    },
    end: (): ExportEnd => end,
  }
}

export type ExportVerdict = AnswerOf<'auditVerify'> & { head?: ChainMark }

/** Checks an export entry by entry, without loading it into memory. */
export async function verifyExport(file: AsyncIterable<string>): Promise<ExportVerdict> {
  const reader = openReader(file)
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
function openReader(file: AsyncIterable<string>) {
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
      const read = parseLine(line)
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

function parseLine(line: string): StoredEntry | ExportEnd | undefined {
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
