import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { openSqliteStore } from '../../src/store/sqlite/open.ts'
import { createPlace, type Place } from './place.ts'

export interface SqlitePlace extends Place {
  readonly file: string
}

export async function createSqlitePlace(): Promise<SqlitePlace> {
  const folder = mkdtempSync(join(tmpdir(), 'orchub-store-'))
  const file = join(folder, 'store.db')
  const place = createPlace((options) => openSqliteStore(file, options), {
    async tamper(sql) {
      const database = new DatabaseSync(file, { timeout: 5000 })
      database.exec(sql)
      database.close()
    },
    async clear() {
      rmSync(folder, { recursive: true })
    },
  })
  return { ...place, file }
}
