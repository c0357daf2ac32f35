import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fstatSync,
  mkdirSync,
  openSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { errnoOf, ProblemError, refuse } from '../problem.ts'
import { type Directory, lookAt, openFolder, showIn } from './directory.ts'

const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

/** Creates a new file in an open folder; never opens an existing one and never follows a link. */
export function createFile(directory: Directory, name: string, mode: number): number {
  const fd = openSync(directory.at(name), NEW_FILE, mode)
  try {
    // Check while the file is still empty.
    if (!isAt(directory, name, fd)) refuse('changed', showIn(directory, name), 'is not where it was made')
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

export function writeNew(
  directory: Directory,
  name: string,
  data: string | Buffer,
  mode: number,
  written?: (fd: number) => void,
): void {
  const fd = createFile(directory, name, mode)
  try {
    writeAll(fd, typeof data === 'string' ? Buffer.from(data) : data)
    setMode(fd, mode)
    written?.(fd)
  } finally {
    closeSync(fd)
  }
}

/** Sets the mode regardless of the umask. An equal mode is not set again, because that would cause a disk write. */
export function setMode(fd: number, mode: number): void {
  if ((fstatSync(fd).mode & 0o777) !== mode) fchmodSync(fd, mode)
}

/** Replaces a file atomically: a reader sees the old or the new one. A link in its place is replaced, not followed. */
export function replaceFile(directory: Directory, name: string, data: string | Buffer, mode: number): void {
  const draft = temporaryName(name)
  try {
    writeNew(directory, draft, data, mode)
    renameSync(directory.at(draft), directory.at(name))
  } catch (error) {
    // On a full disk a part may have been written. A file that existed before is not ours.
    if (errnoOf(error) !== 'EEXIST') removeQuietly(directory, draft)
    throw error
  }
}

/** The original error matters more than a failure to remove the draft. */
function removeQuietly(directory: Directory, name: string): void {
  try {
    unlinkSync(directory.at(name))
  } catch {
    // The draft does not exist.
  }
}

const OWN = randomBytes(6).toString('hex')
let drafts = 0

/** Unique across processes, running or dead. */
export function temporaryName(name: string): string {
  drafts += 1
  return `.${name.slice(0, 100)}.${OWN}${drafts.toString(36)}`
}

export function writeAll(fd: number, data: Buffer): void {
  for (let done = 0; done < data.length; ) done += writeSync(fd, data, done)
}

/** Creates the missing folders along a path and returns the last one, open. */
export function makeFolders(root: Directory, segments: readonly string[]): Directory {
  let current = root
  for (const segment of segments) {
    try {
      const next = makeFolder(current, segment)
      if (current !== root) current.close()
      current = next
    } catch (error) {
      if (current !== root) current.close()
      throw error
    }
  }
  if (current === root) throw new Error('a path of no segments')
  return current
}

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
