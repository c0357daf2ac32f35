import { accessSync, close, constants, fdatasync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { AppError } from '../../base/errors.ts'
import type { IdKind } from '../../base/ids.ts'
import { LAST_KEY } from '../schema/migrations.ts'
import type { MaybePromise, Reader, SqlValue, StoreConnection } from '../store.ts'

const NO_PARAMS: readonly SqlValue[] = []

export function sqliteReader(
  database: DatabaseSync,
  file: string,
): Reader & { prepare(sql: string): StatementSync } {
  const statements = new Map<string, StatementSync>()
  const prepare = (sql: string) => {
    let statement = statements.get(sql)
    if (statement === undefined) {
      statement = database.prepare(sql)
      statements.set(sql, statement)
    }
    return statement
  }
  return {
    prepare,
    all: <Row>(sql: string, params = NO_PARAMS) =>
      withStoreErrors(file, () => prepare(sql).all(...params) as Row[]),
    get: <Row>(sql: string, params = NO_PARAMS) =>
      withStoreErrors(file, () => prepare(sql).get(...params) as Row | undefined),
  }
}

/** No reader sees a commit that a power cut could still undo. */
export function afterSync(reader: Reader, wal: WalSync): Reader {
  return {
    all: (sql, params) => wal.after(() => reader.all(sql, params)),
    get: (sql, params) => wal.after(() => reader.get(sql, params)),
  }
}

export function sqliteConnection(
  database: DatabaseSync,
  file: string,
  wal: Pick<WalSync, 'sync' | 'throwIfFailed'>,
): StoreConnection {
  const { prepare, all, get } = sqliteReader(database, file)
  /** The last key of each kind, read from the tables once. */
  const keys = new Map<IdKind, number>()
  const lastKey = (kind: IdKind) =>
    withStoreErrors(file, () => (prepare(LAST_KEY[kind]).get() as { last: number | null }).last ?? 0)
  return {
    engine: 'sqlite',
    // A file has one daemon, so there is no competition for rows.
    skipLocked: '',
    lockShared: '',
    lockRow: '',
    isCollision: () => false,
    all,
    get,
    begin() {
      wal.throwIfFailed()
      withStoreErrors(file, () => void prepare('BEGIN IMMEDIATE').run())
    },
    run: (sql, params = NO_PARAMS) => withStoreErrors(file, () => void prepare(sql).run(...params)),
    commit() {
      withStoreErrors(file, () => void prepare('COMMIT').run())
      return wal.sync()
    },
    rollback() {
      if (database.isTransaction) prepare('ROLLBACK').run()
    },
    nextKey(kind) {
      const last = keys.get(kind) ?? lastKey(kind)
      keys.set(kind, last + 1)
      return last + 1
    },
  }
}

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
  throwIfFailed(): void
  close(): void
}

export function createWalSync(file: string): WalSync {
  // SQLite keeps one log file while the store is open and holds no locks on it that closing this descriptor could drop.
  let log: number | undefined
  let underWay: Promise<void> | undefined
  /** Linux reports lost pages only once: a later sync would succeed although earlier data is missing. */
  let failure: AppError | undefined

  function throwIfFailed() {
    if (failure !== undefined) throw failure
  }

  async function sync(): Promise<void> {
    throwIfFailed()
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
      throw toStoreError(file, error)
    }
  }

  return {
    sync,
    after(read) {
      throwIfFailed()
      if (underWay === undefined) return read()
      return underWay.then(() => {
        throwIfFailed()
        return read()
      })
    },
    throwIfFailed,
    close() {
      if (log !== undefined) close(log, () => {})
      log = undefined
    },
  }
}

/** SQLite's primary result codes that a user can do something about. */
const ERROR = 1
const FULL = 13
const CORRUPT = 11
const NOT_A_DATABASE = 26
const IO_ERROR = 10
const READ_ONLY = 8
const CANNOT_OPEN = 14
const BUSY = 5

/** Runs a database call and turns its faults into AppErrors with hints. */
export function withStoreErrors<T>(file: string, call: () => T): T {
  try {
    return call()
  } catch (error) {
    throw toStoreError(file, error)
  }
}

export function isBusy(error: unknown): boolean {
  return resultCode(error) === BUSY
}

function resultCode(error: unknown): number | undefined {
  const { errcode, syscall, code } = error as { errcode?: unknown; syscall?: unknown; code?: unknown }
  if (typeof errcode === 'number') return errcode & 0xff
  // A file system error outside SQLite: use the code that SQLite would.
  if (typeof syscall === 'string') return code === 'ENOSPC' ? FULL : CANNOT_OPEN
  return undefined
}

export function toStoreError(file: string, error: unknown): unknown {
  // Orchub never writes numbers that JavaScript can't hold.
  if ((error as NodeJS.ErrnoException).code === 'ERR_OUT_OF_RANGE') {
    return damaged(file, 'a number is out of range', error)
  }
  const text = (error as Error).message
  switch (resultCode(error)) {
    case FULL:
      return new AppError('STORE_FULL', `No space left for ${file}`, {
        hint: 'Nothing was stored. Free some disk space, then send the command again.',
        cause: error,
      })
    case ERROR:
      // The statements are tested, so the tables must have been changed by hand or damaged.
      if (!/^no such (table|column)/.test(text)) return error
      return damaged(file, text, error)
    case CORRUPT:
    case NOT_A_DATABASE:
      return damaged(file, text, error)
    case IO_ERROR:
    case READ_ONLY:
    case CANNOT_OPEN:
    case BUSY:
      if (isOnReadOnly(dirname(file))) {
        return new AppError('STORE_UNAVAILABLE', `${file} cannot be written: the file system is read-only`, {
          hint: 'Set store.url in orc.yaml, or ORC_HOME for the whole state folder, to a writable place.',
          cause: error,
        })
      }
      return new AppError('STORE_UNAVAILABLE', `${file} cannot be written or read (${text})`, {
        hint: 'Check the disk and the permissions of the folder, and that no other program locks the file.',
        cause: error,
      })
    default:
      return error
  }
}

/** Asks the file system, because on a read-only one SQLite and mkdir report misleading errors. */
function isOnReadOnly(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK)
    return false
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const isMissing = code === 'ENOENT' && folder !== dirname(folder)
    return isMissing ? isOnReadOnly(dirname(folder)) : code === 'EROFS'
  }
}

/** After a failed sync, only a restart can tell which of the last commits are stored. */
function diskFailed(file: string, cause: unknown): AppError {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new AppError('STORE_UNAVAILABLE', `${file} could not be synced to disk (${why})`, {
    hint: 'The disk failed; the last commands may or may not be stored. Check the disk, then restart the service.',
    cause,
  })
}

function damaged(file: string, text: string, cause: unknown): AppError {
  return new AppError('STORE_CORRUPT', `${file} is damaged (${text})`, {
    hint: 'Stop the service, keep a copy of the file, and run `orc service doctor`; restore from a backup if it says so.',
    cause,
  })
}
