import { copyFileSync, existsSync, mkdtempSync, rmSync, statSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteStore } from '../../src/store/sqlite/open.ts'
import type { Store } from '../../src/store/store.ts'
import { storeOptions } from './store-fixture.ts'

/** A SQLite store that can crash at any moment: only the bytes in its files survive. */
export interface CrashingStore {
  store(): Store
  /** Bytes of the write-ahead log. */
  logSize(): number
  /** Copies the files; `upTo` cuts the log to the bytes that had reached the disk. */
  capture(upTo?: number): Captured
  /** Opens the copy, as the next process would. */
  revive(captured: Captured): Promise<void>
  reopen(): Promise<void>
  close(): Promise<void>
}

type Captured = string

export async function openCrashingStore(now: () => number): Promise<CrashingStore> {
  const home = mkdtempSync(join(tmpdir(), 'orchub-crash-'))
  const open = (at: string) => openSqliteStore(join(at, 'store.db'), storeOptions({ now }))
  let folder = mkdtempSync(join(home, 'life-'))
  let store = await open(folder)
  const log = (at: string) => join(at, 'store.db-wal')

  return {
    store: () => store,
    logSize: () => statSync(log(folder)).size,
    capture(upTo) {
      const copy = mkdtempSync(join(home, 'life-'))
      for (const name of ['store.db', 'store.db-wal']) {
        if (existsSync(join(folder, name))) copyFileSync(join(folder, name), join(copy, name))
      }
      if (upTo !== undefined && upTo < statSync(log(copy)).size) truncateSync(log(copy), upTo)
      return copy
    },
    async revive(captured) {
      await store.close()
      rmSync(folder, { recursive: true })
      folder = captured
      store = await open(folder)
    },
    async reopen() {
      await store.close()
      store = await open(folder)
    },
    async close() {
      await store.close()
      rmSync(home, { recursive: true })
    },
  }
}
