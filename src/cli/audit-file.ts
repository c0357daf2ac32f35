import { type ChainMark, type StoredEntry, verifyChain } from '../audit/verify.ts'
import { readLines } from '../client/lines.ts'
import { AppError } from '../model/errors.ts'
import type { AnswerOf, AuditEntryAnswer } from '../service/contract.ts'

/** The form in which entries are exported: all that the hash covers, and nothing that it does not. */
export function exportLine({ line: _, ...covered }: AuditEntryAnswer): string {
  return JSON.stringify(covered)
}

export type ExportVerdict = AnswerOf<'auditVerify'> & { head?: ChainMark }

/** Checks an export, entry by entry, whatever its size. */
export async function verifyExport(file: AsyncIterable<string>): Promise<ExportVerdict> {
  const entries = readEntries(file)
  const first = await entries.next()
  if (first.done === true) return { ok: true, count: 0, message: 'The file holds no entries' }
  const { chain, seq } = first.value
  if (seq > 1) {
    const message = `The file begins with entry ${seq}; only a whole export can be checked`
    return { ok: false, count: 0, seq: 1, problem: 'missing', message }
  }
  const verdict = await verifyChain(withFirst(first.value, entries), { chain })
  if (!verdict.ok) return { ...verdict, count: Math.max(0, verdict.seq - 1) }
  const { count, head } = verdict
  return { ok: true, count, head, message: `All is well: ${count} entries are as they were written` }
}

async function* withFirst(first: StoredEntry, rest: AsyncIterable<StoredEntry>): AsyncGenerator<StoredEntry> {
  yield first
  yield* rest
}

async function* readEntries(file: AsyncIterable<string>): AsyncGenerator<StoredEntry> {
  let number = 0
  for await (const line of readLines(file)) {
    number += 1
    if (line.trim() === '') continue
    yield asEntry(line, number)
  }
}

function asEntry(line: string, number: number): StoredEntry {
  try {
    const entry = JSON.parse(line) as AuditEntryAnswer
    if (typeof entry.seq === 'number' && typeof entry.chain === 'string') {
      // Parsing and writing again gives the text that was hashed: it was written in the same way.
      return { ...entry, dataJson: JSON.stringify(entry.data ?? {}) }
    }
  } catch {
    // Told below, with the line.
  }
  throw new AppError('INVALID_REQUEST', `Line ${number} is no entry of an audit`, {
    hint: 'Only an export in the format jsonl can be checked: orc audit export -o audit.jsonl',
  })
}
