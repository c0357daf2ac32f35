import type { AuditDraft } from '../audit/entry.ts'
import type { Connection, Tx } from './store.ts'

/** A connection as a unit of work sees it, while a transaction is open on it. */
export function asTx(
  connection: Connection,
  now: number,
  audit: (draft: AuditDraft) => void,
  afterCommit: (effect: () => void) => void,
): Tx {
  return {
    now,
    skipLocked: connection.skipLocked,
    lockShared: connection.lockShared,
    lockRow: connection.lockRow,
    all: (sql, params) => connection.all(sql, params),
    get: (sql, params) => connection.get(sql, params),
    run: (sql, params) => connection.run(sql, params),
    nextKey: (kind) => connection.nextKey(kind),
    audit,
    afterCommit,
  }
}
