import type { AnswerOf, AuditEntryAnswer } from '../../../api/contract.ts'
import { type ChainMark, type StoredEntry, verifyChain } from '../../../audit/verify.ts'
import { AppError } from '../../../base/errors.ts'
import { readLines } from '../../../client/lines.ts'
import { counted } from '../../output/layout.ts'

/** The last line of an export: a file that was cut off has none, or one that does not fit. */
export interface ExportEnd {
  head: (ChainMark & { chain: string }) | null
  count: number
}

/** The form in which entries are exported: all that the hash covers, and nothing that it does not. */
export function exportLine({ line: _, ...covered }: AuditEntryAnswer): string {
  return JSON.stringify(covered)
}

/** Counts what is exported, for the line that ends it. */
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

/** Checks an export, entry by entry, whatever its size. */
export async function verifyExport(file: AsyncIterable<string>): Promise<ExportVerdict> {
  const reader = openReader(file)
  const entries = reader.entries()
  const first = await entries.next()
  if (first.done === true) {
    return reader.problem() ?? { ok: true, count: 0, message: 'The export of an audit without entries' }
  }
  const { chain, seq } = first.value
  if (seq > 1) {
    const message = `The file begins with entry ${seq}; only a whole export can be checked`
    return { ok: false, count: 0, seq: 1, problem: 'missing', message }
  }
  const verdict = await verifyChain(withFirst(first.value, entries), { chain })
  if (!verdict.ok) return { ...verdict, count: Math.max(0, verdict.seq - 1) }
  const { count, head } = verdict
  const message = `All is well: ${counted(count, 'entry is', 'entries are')} as written`
  return reader.problem({ ...head, chain }) ?? { ok: true, count, head, message }
}

async function* withFirst(first: StoredEntry, rest: AsyncIterable<StoredEntry>): AsyncGenerator<StoredEntry> {
  yield first
  yield* rest
}

/** Reads the entries up to the line that ends the export, and then says whether that line is there and fits. */
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
        problem = `Line ${number} is no entry of an audit: the file was cut off or changed there`
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

const NO_END = 'The file is cut off or not a whole export: the last line, which tells the head, is missing'
const OTHER_END =
  'The file is cut off or not a whole export: its last line tells of another head than its entries have'

function fits({ head, count }: ExportEnd, last: (ChainMark & { chain: string }) | undefined): boolean {
  if (last === undefined) return head === null && count === 0
  return head?.chain === last.chain && head.seq === last.seq && head.hash === last.hash && count === last.seq
}

function parseLine(line: string): StoredEntry | ExportEnd | undefined {
  try {
    const read = JSON.parse(line) as AuditEntryAnswer | ExportEnd
    if ('head' in read) return read
    if (typeof read.seq !== 'number' || typeof read.chain !== 'string') return undefined
    // Parsing and writing again gives the text that was hashed: it was written in the same way.
    return { ...read, dataJson: JSON.stringify(read.data ?? {}) }
  } catch {
    return undefined
  }
}

function notAnExport(): AppError {
  return new AppError('INVALID_REQUEST', 'Line 1 is no entry of an audit', {
    hint: 'Only an export in the format jsonl can be checked: orc audit export -o audit.jsonl',
  })
}
