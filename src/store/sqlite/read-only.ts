import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { MIGRATIONS } from '../schema/migrations.ts'
import type { Reader } from '../store.ts'
import { sqliteReader } from './connection.ts'
import { named } from './fault.ts'
import { isStoreLocked } from './lock.ts'

/** What was stored, at one moment. */
export interface Snapshot {
  readonly reader: Reader
  close(): void
}

/**
 * The store of a file for whoever only looks: no lock, no lease, no migration. `locked`: a daemon has it, which is to be
 * asked instead; `unreadable`: there is none, or it is of another version than this program knows. SQLite may leave an
 * empty -wal with its -shm beside the file, which the next daemon takes over.
 */
export function readSqliteStore(file: string): Snapshot | 'locked' | 'unreadable' {
  if (!existsSync(file)) return 'unreadable'
  if (named(file, () => isStoreLocked(file))) return 'locked'
  const database = named(file, () => new DatabaseSync(file, { readOnly: true, timeout: 5000 }))
  try {
    // All that is read is of one moment, should a daemon start meanwhile and bring it to another version.
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
  // One that is just being made has no tables yet.
  if (reader.get(`SELECT 1 FROM sqlite_schema WHERE name = 'meta'`) === undefined) return false
  const row = reader.get(`SELECT value FROM meta WHERE key = 'schema_version'`) as
    | { value: string }
    | undefined
  return Number(row?.value) === MIGRATIONS.length
}
