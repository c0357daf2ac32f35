import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { MIGRATIONS } from '../schema/migrations.ts'
import type { Reader } from '../store.ts'
import { sqliteReader } from './connection.ts'
import { named } from './fault.ts'
import { isStoreLocked } from './lock.ts'

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
  if (named(file, () => isStoreLocked(file))) return 'locked'
  const database = named(file, () => new DatabaseSync(file, { readOnly: true, timeout: 5000 }))
  try {
    // One snapshot for all reads: a daemon may start meanwhile and migrate the file.
    named(file, () => database.exec('BEGIN'))
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
