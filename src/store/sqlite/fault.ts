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

/** Runs a database call and gives its faults a name, a place and a way out. */
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
  // The folder, which is not SQLite's: a fault of the file system as SQLite would name it.
  if (typeof syscall === 'string') return code === 'ENOSPC' ? FULL : CANNOT_OPEN
  return undefined
}

export function nameFault(file: string, error: unknown): unknown {
  // A number that JavaScript cannot hold was never written by us.
  if ((error as NodeJS.ErrnoException).code === 'ERR_OUT_OF_RANGE') {
    return damaged(file, 'a number is out of range', error)
  }
  const text = (error as Error).message
  switch (resultCode(error)) {
    case FULL:
      return new AppError('STORE_FULL', `No space left for ${file}`, {
        hint: 'Free some disk space; nothing was stored, and the same command can then be sent again.',
        cause: error,
      })
    case ERROR:
      // Our statements are right, so that it can only be the tables, bent by hand or by a flipped bit.
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
          hint: 'Name a place that can be written: store.url in orc.yaml, or ORC_HOME for all of the state folder.',
          cause: error,
        })
      }
      return new AppError('STORE_UNAVAILABLE', `${file} cannot be written or read (${text})`, {
        hint: 'Check the disk, the permissions of the folder, and that no other program holds the file.',
        cause: error,
      })
    default:
      return error
  }
}

/** Asked of the disk itself: on one a folder that cannot be made is told as one that is not there, a file as one that cannot be opened. */
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

/** Nobody knows what of the last commits is there: only what the next start finds is. */
export function diskFailed(file: string, cause: unknown): AppError {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new AppError('STORE_UNAVAILABLE', `${file} could not be brought to the disk (${why})`, {
    hint: 'The disk failed, and what was sent last may or may not be stored. Check the disk, then restart the service.',
    cause,
  })
}

function damaged(file: string, text: string, cause: unknown): AppError {
  return new AppError('STORE_CORRUPT', `${file} is damaged (${text})`, {
    hint: 'Stop the service, keep a copy of the file, and run `orc doctor`; restore from a backup if it says so.',
    cause,
  })
}
