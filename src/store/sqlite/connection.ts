import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { IdKind } from '../../base/ids.ts'
import { LAST_KEY } from '../keys.ts'
import type { Connection, Reader, SqlValue } from '../store.ts'
import { named } from './fault.ts'
import type { WalSync } from './sync.ts'

const NO_PARAMS: readonly SqlValue[] = []

export function sqliteReader(
  database: DatabaseSync,
  file: string,
): Reader & { prepare(sql: string): StatementSync } {
  const statements = new Map<string, StatementSync>()
  const prepare = (sql: string) => {
    let statement = statements.get(sql)
    if (statement === undefined) {
      statement = database.prepare(sql)
      statements.set(sql, statement)
    }
    return statement
  }
  return {
    prepare,
    all: <Row>(sql: string, params = NO_PARAMS) => named(file, () => prepare(sql).all(...params) as Row[]),
    get: <Row>(sql: string, params = NO_PARAMS) =>
      named(file, () => prepare(sql).get(...params) as Row | undefined),
  }
}

export function sqliteConnection(
  database: DatabaseSync,
  file: string,
  wal: Pick<WalSync, 'sync' | 'demand'>,
): Connection {
  const { prepare, all, get } = sqliteReader(database, file)
  /** The last key of each kind, read from the tables once. */
  const keys = new Map<IdKind, number>()
  const lastKey = (kind: IdKind) =>
    named(file, () => (prepare(LAST_KEY[kind]).get() as { last: number | null }).last ?? 0)
  return {
    engine: 'sqlite',
    // A file has one daemon, so there is no competition for rows.
    skipLocked: '',
    lockShared: '',
    lockRow: '',
    isCollision: () => false,
    all,
    get,
    begin() {
      wal.demand()
      named(file, () => void prepare('BEGIN IMMEDIATE').run())
    },
    run: (sql, params = NO_PARAMS) => named(file, () => void prepare(sql).run(...params)),
    commit() {
      named(file, () => void prepare('COMMIT').run())
      return wal.sync()
    },
    rollback() {
      if (database.isTransaction) prepare('ROLLBACK').run()
    },
    nextKey(kind) {
      const last = keys.get(kind) ?? lastKey(kind)
      keys.set(kind, last + 1)
      return last + 1
    },
  }
}
