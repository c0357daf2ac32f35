import { copyFileSync, existsSync, mkdtempSync, rmSync, statSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteStore } from '../../src/store/sqlite/open.ts'
import type { Store } from '../../src/store/store.ts'
import { storeOptions } from './place.ts'

/** A store on a file that can lose its process at any moment: what counts is what the files hold just then. */
export interface CrashingStore {
  store(): Store
  /** Bytes of the write-ahead log. */
  logSize(): number
  /** Keeps the files as they are now; with `upTo`, only that much of the log had reached the disk. */
  capture(upTo?: number): Captured
  /** Goes on with what was captured, as the next process would. */
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
