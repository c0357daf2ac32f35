/**
 * The part of the audit that every commit needs: appending sealed entries and reading the head of a chain. Queries of
 * the audit are in src/audit/store.ts.
 */
import type { AuditEntry } from '../audit/entry.ts'
import { parseId } from '../base/ids.ts'
import type { ChainHead, Reader, SealedEntry, SqlValue, Tx } from './store.ts'

/** Entries per INSERT. The remainder is inserted one by one, so only two statements are ever prepared. */
const ROWS = 16
const COLUMNS = 'chain, seq, at, type, class, actor, subject, text, confidence, data, hash, root, run'
const ROW = '(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)'
const INSERT_ONE = `INSERT INTO audit (${COLUMNS}) VALUES ${ROW}`
const INSERT_MANY = `INSERT INTO audit (${COLUMNS}) VALUES ${Array.from({ length: ROWS }, () => ROW).join(', ')}`

/** All entries must come from one transaction: they share its time. */
export function appendEntries(tx: Tx, sealed: readonly SealedEntry[], head: ChainHead): void {
  if (sealed.length === 0) return
  const at = Date.parse(sealed[0]!.entry.at)
  const whole = sealed.length - (sealed.length % ROWS)
  for (let from = 0; from < whole; from += ROWS) {
    const columns: SqlValue[] = []
    for (let index = from; index < from + ROWS; index++) addColumns(columns, sealed[index]!, at)
    tx.run(INSERT_MANY, columns)
  }
  for (const one of sealed.slice(whole)) tx.run(INSERT_ONE, addColumns([], one, at))
  // The head is stored outside the log to reveal a log that was cut off at its end.
  tx.run(
    `INSERT INTO audit_heads (chain, seq, hash) VALUES (?, ?, ?)
     ON CONFLICT (chain) DO UPDATE SET seq = excluded.seq, hash = excluded.hash`,
    [head.chain, head.seq, head.hash],
  )
}

function addColumns(columns: SqlValue[], { entry, dataJson }: SealedEntry, at: number): SqlValue[] {
  columns.push(
    entry.chain,
    entry.seq,
    at,
    entry.type,
    entry.class,
    entry.actor,
    entry.subject ?? null,
    entry.text,
    entry.confidence ?? null,
    dataJson,
    entry.hash,
    rootIn(entry),
    runIn(entry),
  )
  return columns
}

/** The root of the task tree an entry is about, copied from its data into an indexed column. */
function rootIn({ data }: AuditEntry): number | null {
  const root = data?.root
  return typeof root === 'string' ? (parseId('task', root) ?? null) : null
}

/** The run an entry is about, copied in the same way. */
function runIn({ data }: AuditEntry): number | null {
  const run = data?.run_id
  return typeof run === 'string' ? (parseId('run', run) ?? null) : null
}

export async function readHead(reader: Reader, chain: string): Promise<ChainHead | undefined> {
  return await reader.get<ChainHead>('SELECT chain, seq, hash FROM audit_heads WHERE chain = ?', [chain])
}

export async function hasEntries(reader: Reader, chain: string): Promise<boolean> {
  return (await reader.get('SELECT seq FROM audit WHERE chain = ? LIMIT 1', [chain])) !== undefined
}

/** The time of the entry at the head; 0 for an empty log. */
export async function readTime(reader: Reader, head: ChainHead): Promise<number> {
  const row = await reader.get<{ at: number }>('SELECT at FROM audit WHERE chain = ? AND seq = ?', [
    head.chain,
    head.seq,
  ])
  return row?.at ?? 0
}
