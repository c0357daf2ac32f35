/** Files in folders that agents can write to: reading, creating and replacing them, through open folders only. */
import { createHash, randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fstatSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { basename, dirname } from 'node:path'
import { formatBytes } from '../../base/bytes.ts'
import { errnoOf, ProblemError, problem, refuse } from '../problem.ts'
import {
  borrow,
  type Directory,
  lookAt,
  nextTurn,
  type Opened,
  type OpenFile,
  openDirectory,
  openFile,
  openFolder,
  showIn,
} from './directory.ts'

const PIECE = 256 * 1024

export interface FileContent {
  readonly size: number
  readonly sha256: string
}

/** Reads an open file once: hashes it and, if `to` is given, writes it to that descriptor. */
export async function readContent(
  file: OpenFile,
  shown: string,
  signal: AbortSignal | undefined,
  to?: number,
): Promise<FileContent> {
  const digest = createHash('sha256')
  for await (const piece of readPieces(file, shown, signal)) {
    digest.update(piece)
    if (to !== undefined) writeAll(to, piece)
  }
  return { size: Number(file.stat.size), sha256: digest.digest('hex') }
}

/** Reads an open file in pieces, to limit memory. Fails if the file changes while it is read. */
export async function* readPieces({ fd, stat }: OpenFile, shown: string, signal: AbortSignal | undefined) {
  const size = Number(stat.size)
  await nextTurn(signal)
  for (let done = 0; done < size; ) {
    const piece = Buffer.allocUnsafe(Math.min(PIECE, size - done))
    const count = readSync(fd, piece, 0, piece.length, done)
    if (count === 0) changed(shown)
    done += count
    yield piece.subarray(0, count)
    await nextTurn(signal)
  }
  const after = fstatSync(fd, { bigint: true })
  if (after.size !== stat.size || after.mtimeNs !== stat.mtimeNs) changed(shown)
}

function changed(shown: string): never {
  refuse('changed', shown, 'was changed while it was being read')
}

/** Reads a whole file up to a size limit. Refuses a file with a second hard link, which may be outside. */
export function readSmall(directory: Directory, name: string, limit: number): Opened<Buffer> {
  const opened = openFile(directory, name)
  if (!opened.ok) return opened
  const { fd, stat } = opened.value
  const shown = showIn(directory, name)
  try {
    if (stat.nlink > 1n) {
      return {
        ok: false,
        error: problem('hard_link', shown, 'has a second hard link, so it may belong to someone else'),
      }
    }
    if (stat.size > BigInt(limit)) {
      const [size, most] = [formatBytes(Number(stat.size)), formatBytes(limit)]
      // A rounded number would hide a single byte over the limit.
      const why = `is ${size === most ? `${stat.size} bytes` : size}, over the limit of ${most}`
      return { ok: false, error: problem('too_large', shown, why) }
    }
    const buffer = Buffer.allocUnsafe(Number(stat.size))
    let length = 0
    // The file may have become shorter; anything appended now is read next time.
    for (let count = -1; count !== 0 && length < buffer.length; length += count) {
      count = readSync(fd, buffer, length, buffer.length - length, length)
    }
    return { ok: true, value: buffer.subarray(0, length) }
  } finally {
    closeSync(fd)
  }
}

/** A part of a file, as text. */
export interface FilePart {
  readonly text: string
  /** Size of the whole file. */
  readonly bytes: number
  readonly isCut: boolean
}

/**
 * Reads the beginning or the end of a file in a folder to which agents can write. Follows no link in place of the folder or
 * the file. Undefined if there is nothing to read.
 */
export function readFilePart(path: string, most: number, which: 'beginning' | 'end'): FilePart | undefined {
  try {
    using folder = openDirectory(dirname(path))
    return readPartIn(folder, basename(path), most, which)
  } catch {
    return undefined
  }
}

export function readPartIn(
  folder: Directory,
  name: string,
  most: number,
  which: 'beginning' | 'end',
): FilePart | undefined {
  const opened = openFile(folder, name)
  if (!opened.ok) return undefined
  const { fd, stat } = opened.value
  try {
    const size = Number(stat.size)
    const buffer = Buffer.alloc(Math.min(size, most))
    const count = readSync(fd, buffer, 0, buffer.length, which === 'end' ? size - buffer.length : 0)
    return { text: buffer.toString('utf8', 0, count), bytes: size, isCut: size > most }
  } finally {
    closeSync(fd)
  }
}

const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

/** Creates a new file in an open folder; never opens an existing one and never follows a link. */
export function createFile(directory: Directory, name: string, mode: number): number {
  const fd = openSync(directory.at(name), NEW_FILE, mode)
  try {
    // Check while the file is still empty.
    if (!isAt(directory, name, fd))
      refuse('changed', showIn(directory, name), 'was moved while it was being created')
    return fd
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

/** With a path through the folder's descriptor, the file cannot be elsewhere. */
function isAt(directory: Directory, name: string, fd: number): boolean {
  if (directory.throughDescriptor) return true
  if (!directory.isStill()) return false
  const made = fstatSync(fd, { bigint: true })
  const seen = lookAt(directory, name)
  return seen?.dev === made.dev && seen.ino === made.ino
}

export function writeNew(directory: Directory, name: string, data: string | Buffer, mode: number): void {
  const fd = createFile(directory, name, mode)
  try {
    writeAll(fd, typeof data === 'string' ? Buffer.from(data) : data)
    // Regardless of the umask.
    fchmodSync(fd, mode)
  } finally {
    closeSync(fd)
  }
}

/** Replaces a file atomically: a reader sees the old or the new one. A link in its place is replaced, not followed. */
export function replaceFile(directory: Directory, name: string, data: string | Buffer, mode: number): void {
  const draft = temporaryName(name)
  try {
    writeNew(directory, draft, data, mode)
    renameSync(directory.at(draft), directory.at(name))
  } catch (error) {
    // On a full disk a part may have been written.
    removeQuietly(directory, draft)
    throw error
  }
}

/** Removes a file, and ignores a failure to do so: another error matters more, or a leftover file is harmless. */
export function removeQuietly(directory: Directory, name: string): void {
  try {
    unlinkSync(directory.at(name))
  } catch {}
}

/** A hidden name that no agent can guess. */
export function temporaryName(name: string): string {
  return `.${name.slice(0, 100)}.${randomBytes(8).toString('hex')}`
}

function writeAll(fd: number, data: Buffer): void {
  for (let done = 0; done < data.length; ) done += writeSync(fd, data, done)
}

/** Creates the missing folders along a path and opens the last one. Without segments, returns the root. */
export function makeFolders(root: Directory, segments: readonly string[]): Directory {
  let current = root
  for (const segment of segments) {
    const parent = current
    try {
      current = makeFolder(parent, segment)
    } finally {
      if (parent !== root) parent.close()
    }
  }
  return current === root ? borrow(root) : current
}

/** Opens a folder in an open one, and creates it first if it is missing. */
export function makeFolder(parent: Directory, name: string, shown?: string): Directory {
  try {
    mkdirSync(parent.at(name), 0o755)
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error
  }
  const opened = openFolder(parent, name, shown)
  if (!opened.ok) throw new ProblemError(opened.error)
  return opened.value
}

/**
 * Makes a folder and those above it, one by one: with `recursive`, Node reports a read-only file system as a missing folder.
 * Returns the first folder that did not exist.
 */
export function makeWithParents(folder: string): string | undefined {
  const above = existsSync(dirname(folder)) ? undefined : makeWithParents(dirname(folder))
  if (existsSync(folder)) return above
  mkdirSync(folder)
  return above ?? folder
}
