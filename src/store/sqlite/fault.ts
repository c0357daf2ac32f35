import { accessSync, constants } from 'node:fs'
import { dirname } from 'node:path'
import { AppError } from '../../base/errors.ts'

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
export function named<T>(file: string, call: () => T): T {
  try {
    return call()
  } catch (error) {
    throw nameFault(file, error)
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

export function nameFault(file: string, error: unknown): unknown {
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
export function diskFailed(file: string, cause: unknown): AppError {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new AppError('STORE_UNAVAILABLE', `${file} could not be synced to disk (${why})`, {
    hint: 'The disk failed; the last commands may or may not be stored. Check the disk, then restart the service.',
    cause,
  })
}

function damaged(file: string, text: string, cause: unknown): AppError {
  return new AppError('STORE_CORRUPT', `${file} is damaged (${text})`, {
    hint: 'Stop the service, keep a copy of the file, and run `orc doctor`; restore from a backup if it says so.',
    cause,
  })
}
