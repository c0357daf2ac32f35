import { close, fdatasync, openSync } from 'node:fs'
import type { AppError } from '../../base/errors.ts'
import type { MaybePromise } from '../store.ts'
import { diskFailed, nameFault } from './fault.ts'

/**
 * Brings commits to the disk beside the event loop. SQLite itself would sync within COMMIT, and everything else would stand
 * still meanwhile; so it only writes its log (synchronous=NORMAL), and the log is synced here before anyone is told.
 */
export interface WalSync {
  /** Resolves when all that is committed by now is on disk. */
  sync(): Promise<void>
  /** Reads what is on disk: nobody is told of a commit that a power cut could still undo. */
  after<T>(read: () => MaybePromise<T>): MaybePromise<T>
  /** Throws once the disk has failed: nothing is written, read or told any more. */
  demand(): void
  close(): void
}

export function createWalSync(file: string): WalSync {
  // SQLite keeps one log as long as the store is open, and holds no locks on it that another descriptor could take away.
  let log: number | undefined
  let underWay: Promise<void> | undefined
  /** Linux tells of lost pages once. A later sync would succeed, and the hole before it would be taken for stored. */
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
