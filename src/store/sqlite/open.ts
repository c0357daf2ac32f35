import { chmodSync, existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { assembleStore, type StoreOptions } from '../assemble.ts'
import { type Dialect, migrate } from '../schema/migrate.ts'
import type { Reader, SqlValue, Store } from '../store.ts'
import { sqliteConnection, sqliteReader } from './connection.ts'
import { named, nameFault } from './fault.ts'
import { lockStore } from './lock.ts'
import { createWalSync, type WalSync } from './sync.ts'

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
  named(file, () => mkdirSync(dirname(file), { recursive: true, mode: 0o700 }))
  const lock = named(file, () => lockStore(file, options.identity))
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
    const writer = named(file, () => new DatabaseSync(file, { timeout: 5000 }))
    database = writer
    if (fresh) chmodSync(file, 0o600)
    named(file, () => writer.exec(PRAGMAS))
    const connection = sqliteConnection(writer, file, wal)
    await migrate(connection, DIALECT, (script) => named(file, () => writer.exec(script)))
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
      demand: wal.demand,
      check: async () => checkFile(reading, file),
      close,
    }
    return await assembleStore(engine, options)
  } catch (error) {
    await close()
    throw error
  }
}

function afterSync(reader: Reader, wal: WalSync): Reader {
  return {
    all: (sql, params) => wal.after(() => reader.all(sql, params)),
    get: (sql, params) => wal.after(() => reader.get(sql, params)),
  }
}

function setStatistics(database: DatabaseSync, file: string) {
  named(file, () => {
    const known = database.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_stat1'`).get()
    if (known === undefined) database.exec(`BEGIN; ${STATISTICS} COMMIT`)
  })
}

function openReadOnly(file: string): DatabaseSync {
  return named(file, () => new DatabaseSync(file, { readOnly: true, timeout: 5000 }))
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
    throw nameFault(file, error)
  } finally {
    database.close()
  }
}

function checkFile(database: DatabaseSync, file: string): string[] {
  try {
    const rows = database.prepare('PRAGMA integrity_check(20)').all() as { integrity_check: string }[]
    return rows.map((row) => row.integrity_check).filter((line) => line !== 'ok')
  } catch (error) {
    return [(nameFault(file, error) as Error).message]
  }
}
