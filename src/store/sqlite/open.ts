import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { AppError } from '../../base/errors.ts'
import { type DaemonIdentity, describeDaemon } from '../daemons.ts'
import { openStore, type StoreOptions } from '../open-store.ts'
import { type Dialect, migrate } from '../schema/migrate.ts'
import { MIGRATIONS } from '../schema/migrations.ts'
import type { Reader, SqlValue, Store } from '../store.ts'
import {
  afterSync,
  createWalSync,
  isBusy,
  sqliteConnection,
  sqliteReader,
  toStoreError,
  type WalSync,
  withStoreErrors,
} from './connection.ts'

const DIALECT: Dialect = {
  key: 'INTEGER PRIMARY KEY',
  int: 'INTEGER',
  text: 'TEXT',
  clustered: 'WITHOUT ROWID',
  // A file has one daemon and one chain, so the sequence number alone is the key.
  audit_key: 'seq INTEGER PRIMARY KEY, chain TEXT NOT NULL',
  serial: 'INTEGER PRIMARY KEY',
  // An index without its own copy of the text; triggers keep it in sync with the table.
  github_search: `
    CREATE VIRTUAL TABLE github_search USING fts5(
      title, body, content='github_documents', content_rowid='id', tokenize='porter unicode61');
    CREATE TRIGGER github_documents_added AFTER INSERT ON github_documents BEGIN
      INSERT INTO github_search (rowid, title, body) VALUES (new.id, new.title, new.body);
    END;
    CREATE TRIGGER github_documents_changed AFTER UPDATE OF title, body ON github_documents BEGIN
      INSERT INTO github_search (github_search, rowid, title, body) VALUES ('delete', old.id, old.title, old.body);
      INSERT INTO github_search (rowid, title, body) VALUES (new.id, new.title, new.body);
    END;
    CREATE TRIGGER github_documents_removed AFTER DELETE ON github_documents BEGIN
      INSERT INTO github_search (github_search, rowid, title, body) VALUES ('delete', old.id, old.title, old.body);
    END`,
}

/** NORMAL, because `createWalSync` syncs the log before a write resolves. A large WAL keeps checkpoints out of most commits. */
const PRAGMAS = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  PRAGMA wal_autocheckpoint = 4000;
  PRAGMA cache_size = -16000;
  PRAGMA foreign_keys = OFF;
`

/**
 * Without statistics, the planner scans all deliveries of an agent by primary key instead of the few open ones. They are
 * fixed, because counting today's rows would be wrong tomorrow (docs/decisions/0020).
 */
const STATISTICS = `
  ANALYZE meta;
  DELETE FROM sqlite_stat1;
  INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('deliveries', 'deliveries', '1000000 100000 1'),
    ('deliveries', 'deliveries_open', '100 10 1');
  ANALYZE sqlite_schema;
`

export async function openSqliteStore(file: string, options: StoreOptions): Promise<Store> {
  withStoreErrors(file, () => mkdirSync(dirname(file), { recursive: true, mode: 0o700 }))
  const lock = withStoreErrors(file, () => lockStore(file, options.identity))
  let database: DatabaseSync | undefined
  let readOnly: DatabaseSync | undefined
  const wal = createWalSync(file)
  const close = async () => {
    wal.close()
    readOnly?.close()
    database?.close()
    lock.release()
  }
  try {
    const fresh = !existsSync(file)
    const writer = withStoreErrors(file, () => new DatabaseSync(file, { timeout: 5000 }))
    database = writer
    if (fresh) chmodSync(file, 0o600)
    withStoreErrors(file, () => writer.exec(PRAGMAS))
    const connection = sqliteConnection(writer, file, wal)
    await migrate(connection, DIALECT, (script) => withStoreErrors(file, () => writer.exec(script)))
    setStatistics(writer, file)
    // A second connection sees committed data only, even while the first runs a batch.
    const reading = openReadOnly(file)
    readOnly = reading
    const engine = {
      connection,
      reader: afterSync(sqliteReader(reading, file), wal),
      stream: <Row>(sql: string, params?: readonly SqlValue[]) =>
        streamRows<Row>(file, wal, sql, params ?? []),
      exclusive: true,
      throwIfFailed: wal.throwIfFailed,
      check: async () => checkFile(reading, file),
      close,
    }
    return await openStore(engine, options)
  } catch (error) {
    await close()
    throw error
  }
}

function setStatistics(database: DatabaseSync, file: string) {
  withStoreErrors(file, () => {
    const known = database.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_stat1'`).get()
    if (known === undefined) database.exec(`BEGIN; ${STATISTICS} COMMIT`)
  })
}

function openReadOnly(file: string): DatabaseSync {
  return withStoreErrors(file, () => new DatabaseSync(file, { readOnly: true, timeout: 5000 }))
}

/** Uses its own connection: an open cursor holds its snapshot, and other readers must not see old data. */
async function* streamRows<Row>(
  file: string,
  wal: WalSync,
  sql: string,
  params: readonly SqlValue[],
): AsyncIterable<Row> {
  await wal.after(() => {})
  const database = openReadOnly(file)
  try {
    yield* database.prepare(sql).iterate(...params) as Iterable<Row>
  } catch (error) {
    throw toStoreError(file, error)
  } finally {
    database.close()
  }
}

function checkFile(database: DatabaseSync, file: string): string[] {
  try {
    const rows = database.prepare('PRAGMA integrity_check(20)').all() as { integrity_check: string }[]
    return rows.map((row) => row.integrity_check).filter((line) => line !== 'ok')
  } catch (error) {
    return [(toStoreError(file, error) as Error).message]
  }
}

/** Offline commands hold the lock only briefly. */
const WAIT_MS = 1500

/**
 * Allows one daemon per store. The lock is an exclusive transaction on a small database beside the store. The kernel
 * releases it when the process ends for any reason, so no stale lock can remain.
 */
export function lockStore(file: string, identity: DaemonIdentity): { release(): void } {
  const lockFile = `${file}.lock`
  const holderFile = `${file}.holder`
  const lock = new DatabaseSync(lockFile, { timeout: WAIT_MS })
  try {
    lock.exec('PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    if (!isBusy(error)) throw error
    throw new AppError('STORE_LOCKED', `Another daemon uses ${file}: ${describeHolder(holderFile)}`, {
      hint: 'Use that one, stop it, or give this one its own state folder (ORC_HOME).',
      cause: error,
    })
  }
  noteHolder(holderFile, identity)
  return { release: () => lock.close() }
}

/** Whether a daemon holds the store now. A starting daemon waits longer for the lock than this check takes. */
function isStoreLocked(file: string): boolean {
  const lockFile = `${file}.lock`
  if (!existsSync(lockFile)) return false
  const lock = new DatabaseSync(lockFile, { readOnly: true, timeout: 0 })
  try {
    lock.prepare('SELECT 1 FROM sqlite_schema').get()
    return false
  } catch (error) {
    if (isBusy(error)) return true
    throw error
  } finally {
    lock.close()
  }
}

/** Only for the error of a second daemon, so a full disk must not fail here. */
function noteHolder(holderFile: string, { pid, address, host }: DaemonIdentity) {
  try {
    writeFileSync(holderFile, JSON.stringify({ pid, address, host }), { mode: 0o600 })
  } catch {
    // The error then can't name the holder.
  }
}

function describeHolder(holderFile: string): string {
  try {
    return describeDaemon(JSON.parse(readFileSync(holderFile, 'utf8')))
  } catch {
    return 'unknown process'
  }
}

/** The stored data at one moment. */
export interface Snapshot {
  readonly reader: Reader
  close(): void
}

/**
 * Opens a store file for reading, without lock, lease or migration. `locked`: a daemon holds it; ask the daemon instead.
 * `unreadable`: the file doesn't exist or has another schema version. SQLite may leave an empty -wal and -shm beside the
 * file, which the next daemon reuses.
 */
export function readSqliteStore(file: string): Snapshot | 'locked' | 'unreadable' {
  if (!existsSync(file)) return 'unreadable'
  if (withStoreErrors(file, () => isStoreLocked(file))) return 'locked'
  const database = openReadOnly(file)
  try {
    // All reads share a snapshot: a daemon may start and migrate the file in between.
    withStoreErrors(file, () => database.exec('BEGIN'))
    const reader = sqliteReader(database, file)
    if (hasThisVersion(reader)) return { reader, close: () => database.close() }
    database.close()
    return 'unreadable'
  } catch (error) {
    database.close()
    throw error
  }
}

function hasThisVersion(reader: ReturnType<typeof sqliteReader>): boolean {
  // A file that is being created has no tables yet.
  if (reader.get(`SELECT 1 FROM sqlite_schema WHERE name = 'meta'`) === undefined) return false
  const row = reader.get(`SELECT value FROM meta WHERE key = 'schema_version'`) as
    | { value: string }
    | undefined
  return Number(row?.value) === MIGRATIONS.length
}
