import { close, fdatasync, openSync } from 'node:fs'
import type { AppError } from '../../base/errors.ts'
import type { MaybePromise } from '../store.ts'
import { diskFailed, nameFault } from './fault.ts'

/**
 * Syncs commits to disk off the event loop. SQLite would sync inside COMMIT and block everything else, so it only writes
 * its log (synchronous=NORMAL), and the log is synced here before a write resolves.
 */
export interface WalSync {
  /** Resolves when all commits so far are on disk. */
  sync(): Promise<void>
  /** Reads after pending syncs: no reader sees a commit that a power cut could still undo. */
  after<T>(read: () => MaybePromise<T>): MaybePromise<T>
  /** Throws once the disk has failed: no further reads or writes. */
  demand(): void
  close(): void
}

export function createWalSync(file: string): WalSync {
  // SQLite keeps one log file while the store is open and holds no locks on it that closing this descriptor could drop.
  let log: number | undefined
  let underWay: Promise<void> | undefined
  /** Linux reports lost pages only once: a later sync would succeed although earlier data is missing. */
  let failure: AppError | undefined

  function demand() {
    if (failure !== undefined) throw failure
  }

  async function sync(): Promise<void> {
    demand()
    const done = new Promise<void>((resolve, reject) => {
      log ??= openSync(`${file}-wal`, 'r+')
      fdatasync(log, (error) => {
        if (error === null && failure === undefined) return resolve()
        failure ??= diskFailed(file, error)
        reject(failure)
      })
    })
    const settled = done
      .catch(() => {})
      .then(() => {
        if (underWay === settled) underWay = undefined
      })
    underWay = settled
    try {
      await done
    } catch (error) {
      throw nameFault(file, error)
    }
  }

  return {
    sync,
    after(read) {
      demand()
      if (underWay === undefined) return read()
      return underWay.then(() => {
        demand()
        return read()
      })
    },
    demand,
    close() {
      if (log !== undefined) close(log, () => {})
      log = undefined
    },
  }
}
