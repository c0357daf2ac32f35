import { AppError } from '../../model/errors.ts'

/** SQLite's primary result codes that a user can do something about. */
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
  const code = (error as { errcode?: unknown }).errcode
  return typeof code === 'number' && (code & 0xff) === BUSY
}

export function nameFault(file: string, error: unknown): unknown {
  const code = (error as { errcode?: unknown }).errcode
  if (typeof code !== 'number') return error
  const text = (error as Error).message
  switch (code & 0xff) {
    case FULL:
      return new AppError('STORE_FULL', `No space left for ${file}`, {
        hint: 'Free some disk space; nothing was stored, and the same command can then be sent again.',
        cause: error,
      })
    case CORRUPT:
    case NOT_A_DATABASE:
      return new AppError('STORE_CORRUPT', `${file} is damaged (${text})`, {
        hint: 'Stop the service, keep a copy of the file, and run `orc doctor`; restore from a backup if it says so.',
        cause: error,
      })
    case IO_ERROR:
    case READ_ONLY:
    case CANNOT_OPEN:
    case BUSY:
      return new AppError('STORE_UNAVAILABLE', `${file} cannot be written or read (${text})`, {
        hint: 'Check the disk, the permissions of the folder, and that no other program holds the file.',
        cause: error,
      })
    default:
      return error
  }
}
