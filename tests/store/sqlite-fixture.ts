import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { openSqliteStore } from '../../src/store/sqlite/open.ts'
import { createFixture, type StoreFixture } from './store-fixture.ts'

export interface SqliteFixture extends StoreFixture {
  readonly file: string
}

export async function createSqliteFixture(): Promise<SqliteFixture> {
  const folder = mkdtempSync(join(tmpdir(), 'orchub-store-'))
  const file = join(folder, 'store.db')
  const fixture = createFixture((options) => openSqliteStore(file, options), {
    async tamper(sql) {
      const database = new DatabaseSync(file, { timeout: 5000 })
      database.exec(sql)
      database.close()
    },
    async clear() {
      rmSync(folder, { recursive: true })
    },
  })
  return { ...fixture, file }
}
