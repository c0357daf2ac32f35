import {
  type BigIntStats,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  opendirSync,
  openSync,
  readdirSync,
} from 'node:fs'
import type { Result } from '../../base/result.ts'
import { errnoOf, ProblemError, problem, problemOf, type WorkspaceProblem } from '../problem.ts'
import { faultOf, isPlainName, showName } from './entry-name.ts'

/**
 * An open folder. Its entries are reached through the open folder and not through its path, so that nobody can replace it
 * by another folder or a link between two calls.
 */
export interface Directory {
  /** Path for messages, relative to what the reader knows. */
  readonly shown: string
  readonly fd: number
  readonly throughDescriptor: boolean
  readonly dev: bigint
  readonly ino: bigint
  /** A path that leads to an entry of exactly this folder. */
  at(name: string | Buffer): string | Buffer
  /** The path of the folder itself, for listing it. */
  readonly self: string | Buffer
  /** False if something on the path to this folder was replaced. */
  isStill(): boolean
  close(): void
}

interface DirectoryOptions {
  /** Name for messages. */
  shown?: string
  /** False: behave as on systems where a path cannot contain an open folder. */
  throughDescriptor?: boolean
}

/** Node has no openat. On Linux /proc/self/fd/N leads to exactly the open folder; see docs/decisions/0021. */
const DESCRIPTORS = '/proc/self/fd'
const HAS_DESCRIPTORS = process.platform === 'linux' && existsSync(DESCRIPTORS)

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
/** NONBLOCK: a pipe that replaced the file must not block. */
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY

/** Opens a folder whose parent folders are trusted: only the last part of the path is checked. Throws file system errors. */
export function openDirectory(path: string, options: DirectoryOptions = {}): Directory {
  const fd = openSync(path, FOLDER)
  const { shown = path, throughDescriptor = HAS_DESCRIPTORS } = options
  return directoryOf(fd, throughDescriptor ? path : Buffer.from(path), shown, throughDescriptor)
}

function directoryOf(
  fd: number,
  path: string | Buffer,
  shown: string,
  throughDescriptor: boolean,
  parent?: Directory,
): Directory {
  const self = throughDescriptor ? `${DESCRIPTORS}/${fd}` : path
  let open = true
  // Rarely needed: through its descriptor a folder is always the same one.
  let known: Pick<BigIntStats, 'dev' | 'ino'> | undefined
  const identity = () => {
    known ??= fstatSync(fd, { bigint: true })
    return known
  }
  if (!throughDescriptor) identity()
  return {
    shown,
    fd,
    throughDescriptor,
    get dev() {
      return identity().dev
    },
    get ino() {
      return identity().ino
    },
    self,
    at(name) {
      if (!open) throw new Error(`${shown} was closed`)
      if (typeof name === 'string' && typeof self === 'string' && isPlainName(name)) return `${self}/${name}`
      const bytes = typeof name === 'string' ? Buffer.from(name) : name
      if (bytes.includes(0x2f) || bytes.includes(0) || isDots(bytes)) {
        throw new Error(`${showName(bytes.toString())} is not the name of an entry`)
      }
      return Buffer.concat([Buffer.from(self), Buffer.from('/'), bytes])
    },
    isStill() {
      if (throughDescriptor) return true
      const { dev, ino } = identity()
      const now = lstatSync(path, { bigint: true, throwIfNoEntry: false })
      return now?.dev === dev && now.ino === ino && (parent?.isStill() ?? true)
    },
    close() {
      if (open) closeSync(fd)
      open = false
    },
  }
}

function isDots(name: Buffer): boolean {
  return name.length === 0 || (name.length <= 2 && name.every((byte) => byte === 0x2e))
}

export function showIn(directory: Directory, name: string): string {
  return directory.shown === '' ? showName(name) : `${directory.shown}/${showName(name)}`
}

export function lookAt(directory: Directory, name: string | Buffer): BigIntStats | undefined {
  return lstatSync(directory.at(name), { bigint: true, throwIfNoEntry: false })
}

export type Opened<T> = Result<T, WorkspaceProblem>

/** Opens a folder inside an open one; never follows a link. */
export function openFolder(
  parent: Directory,
  name: string,
  shown: string = showIn(parent, name),
): Opened<Directory> {
  const fault = faultOf(name)
  if (fault !== undefined) return refused(problem('bad_name', shown, fault))
  try {
    const path = parent.at(name)
    // Opening a folder has no side effects, so try first and find the reason for a failure after that.
    const direct = parent.throughDescriptor ? tryFolder(path) : undefined
    if (direct !== undefined) {
      return { ok: true, value: directoryOf(direct, path, shown, true, parent) }
    }
    const seen = lookAt(parent, name)
    if (seen === undefined) return refused(problem('missing', shown, 'does not exist'))
    if (!seen.isDirectory()) return refused(notAFolder(shown, seen))
    const fd = openSync(path, FOLDER)
    const opened = directoryOf(fd, Buffer.from(path), shown, parent.throughDescriptor, parent)
    if (opened.dev === seen.dev && opened.ino === seen.ino && opened.isStill()) {
      return { ok: true, value: opened }
    }
    opened.close()
    return refused(changed(shown))
  } catch (error) {
    return refused(sincePresent(error, shown))
  }
}

function tryFolder(path: string | Buffer): number | undefined {
  try {
    return openSync(path, FOLDER)
  } catch {
    return undefined
  }
}

/** Opens a folder of the protocol in a workspace, such as outbox/. Throws its problem. */
export function openPart(workspace: string, name: string, shown: string = name): Directory {
  const root = openDirectory(workspace, { shown: '' })
  try {
    const opened = openFolder(root, name, shown)
    if (!opened.ok) throw new ProblemError(opened.error)
    return opened.value
  } finally {
    root.close()
  }
}

/** Opens the folders along a path, one inside the other, and keeps only the last. */
export function openFolders(root: Directory, segments: readonly string[]): Opened<Directory> {
  let current = root
  for (const segment of segments) {
    const next = openFolder(current, segment)
    if (current !== root) current.close()
    if (!next.ok) return next
    current = next.value
  }
  if (current !== root) return { ok: true, value: current }
  throw new Error('a path of no segments')
}

export interface OpenFile {
  readonly fd: number
  readonly stat: BigIntStats
}

/** Opens a regular file inside an open folder. The entry must be the same before, during and after opening. */
export function openFile(directory: Directory, name: string): Opened<OpenFile> {
  const shown = showIn(directory, name)
  try {
    const seen = lookAt(directory, name)
    if (seen === undefined) return refused(problem('missing', shown, 'does not exist'))
    // Never opened: opening a device can have effects.
    if (!seen.isFile()) return refused(notAFile(shown, seen))
    return openSeen(directory, name, seen)
  } catch (error) {
    return refused(sincePresent(error, shown))
  }
}

/** Opens a regular file only if it is still the one that was seen. */
export function openSeen(directory: Directory, name: string, seen: BigIntStats): Opened<OpenFile> {
  const shown = showIn(directory, name)
  try {
    const fd = openSync(directory.at(name), FILE)
    const stat = fstatSync(fd, { bigint: true })
    const same = stat.isFile() && stat.dev === seen.dev && stat.ino === seen.ino
    if (same && directory.isStill()) return { ok: true, value: { fd, stat } }
    closeSync(fd)
    return refused(changed(shown))
  } catch (error) {
    return refused(sincePresent(error, shown))
  }
}

/** The problem with an entry that is neither a regular file nor a folder. */
export function trapOf(shown: string, stat: BigIntStats): WorkspaceProblem | undefined {
  if (stat.isSymbolicLink()) {
    return problem('symbolic_link', shown, 'is a symbolic link, which is not followed')
  }
  if (stat.isFIFO()) return problem('special_file', shown, 'is a named pipe')
  if (stat.isSocket()) return problem('special_file', shown, 'is a socket')
  if (stat.isCharacterDevice() || stat.isBlockDevice()) return problem('special_file', shown, 'is a device')
  return undefined
}

function notAFile(shown: string, stat: BigIntStats): WorkspaceProblem {
  return trapOf(shown, stat) ?? problem('not_a_file', shown, 'is a folder, not a file')
}

function notAFolder(shown: string, stat: BigIntStats): WorkspaceProblem {
  return trapOf(shown, stat) ?? problem('not_a_folder', shown, 'is a file, not a folder')
}

function changed(shown: string): WorkspaceProblem {
  return problem('changed', shown, 'was replaced while it was being opened')
}

/** The entry existed a moment ago, so a missing or different one is a change. */
function sincePresent(error: unknown, shown: string): WorkspaceProblem {
  const code = errnoOf(error)
  const isGone = code === 'ENOENT' || code === 'ELOOP' || code === 'ENOTDIR' || code === 'ENXIO'
  return isGone ? changed(shown) : problemOf(error, shown)
}

function refused(found: WorkspaceProblem): { ok: false; error: WorkspaceProblem } {
  return { ok: false, error: found }
}

/** Node's types do not know that names can come as bytes. */
interface RawEntry {
  readonly name: Buffer
}

/** A folder of this size has a few thousand names at most; reading it whole takes a quarter of the time. */
const SMALL_BYTES = 64 * 1024
const PIECE = 1024

/** At most `most` names in a folder, as bytes: a folder with a million entries is not read to its end. */
export function listNames(directory: Directory, most: number): Buffer[] {
  const { size } = fstatSync(directory.fd)
  if (isSmall(size)) return readdirSync(directory.self, { encoding: 'buffer' }).slice(0, most)
  return [...readNames(directory, Math.min(most + 1, PIECE)).take(most)]
}

/** All names, without keeping all of them in memory. */
export function namesIn(directory: Directory): Iterable<Buffer> {
  const { size } = fstatSync(directory.fd)
  return isSmall(size) ? readdirSync(directory.self, { encoding: 'buffer' }) : readNames(directory, PIECE)
}

const isSmall = (size: number) => size > 0 && size <= SMALL_BYTES

function* readNames(directory: Directory, bufferSize: number): Generator<Buffer, void> {
  const listing = opendirSync(directory.self.toString(), {
    encoding: 'buffer' as BufferEncoding,
    bufferSize,
  })
  try {
    for (;;) {
      const entry = listing.readSync() as RawEntry | null
      if (entry === null) return
      yield entry.name
    }
  } finally {
    listing.closeSync()
  }
}

/** Linux: opens only the location, which needs no permission on the file. Node has no constant for it. */
const O_PATH = 0o10000000
/** Read, write and enter. */
const OWNER = 0o700

/** Changes the mode of a folder, never of a link's target, and returns the previous one. */
export function changeMode(path: string | Buffer, change: (mode: number) => number): number {
  if (process.platform !== 'linux') {
    const before = lstatSync(path).mode & 0o7777
    chmodSync(path, change(before))
    return before
  }
  const fd = openSync(path, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  try {
    const before = fstatSync(fd).mode & 0o7777
    chmodSync(`/proc/self/fd/${fd}`, change(before))
    return before
  } finally {
    closeSync(fd)
  }
}

/**
 * Restores the owner's permissions on a folder. An agent, or its `cp -a` of a read-only inbox, may have removed them; without
 * them the folder cannot be filled or moved. Ignores anything but folders.
 */
export function allowOwner(path: string | Buffer): void {
  const seen = lstatSync(path, { throwIfNoEntry: false })
  if (!seen?.isDirectory() || (seen.mode & OWNER) === OWNER) return
  changeMode(path, (mode) => mode | OWNER)
}
