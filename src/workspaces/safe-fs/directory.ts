/**
 * Folders that agents can write to: opening them and their entries, checking names, listing and watching. Entries are
 * reached through the open folder and not through its path, so an agent cannot replace the folder by a link between two calls.
 */
import {
  type BigIntStats,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  type FSWatcher,
  fstatSync,
  lstatSync,
  opendirSync,
  openSync,
  watch,
} from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { AppError } from '../../base/errors.ts'
import { failure, type Result } from '../../base/result.ts'
import { errnoOf, ProblemError, problem, problemOf, type WorkspaceProblem } from '../problem.ts'

/** An open folder. */
export interface Directory {
  /** Path for messages, relative to what the reader knows. */
  readonly shown: string
  readonly fd: number
  readonly throughDescriptor: boolean
  readonly dev: bigint
  readonly ino: bigint
  /** A path that leads to an entry of exactly this folder. */
  at(name: string | Buffer): Buffer
  /** The path of the folder itself, for listing it. */
  readonly self: string
  /** False if something on the path to this folder was replaced. */
  isStill(): boolean
  close(): void
  /** The same as `close`, for `using`. */
  [Symbol.dispose](): void
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
  const { shown = path, throughDescriptor = HAS_DESCRIPTORS } = options
  return directoryOf(openSync(path, FOLDER), path, shown, throughDescriptor)
}

function directoryOf(
  fd: number,
  path: string,
  shown: string,
  throughDescriptor: boolean,
  parent?: Directory,
): Directory {
  const self = throughDescriptor ? `${DESCRIPTORS}/${fd}` : path
  const { dev, ino } = fstatSync(fd, { bigint: true })
  let open = true
  const close = () => {
    if (open) closeSync(fd)
    open = false
  }
  return {
    shown,
    fd,
    throughDescriptor,
    dev,
    ino,
    self,
    at(name) {
      if (!open) throw new Error(`${shown} was closed`)
      const bytes = typeof name === 'string' ? Buffer.from(name) : name
      if (bytes.includes(0x2f) || bytes.includes(0) || isDots(bytes)) {
        throw new Error(`${showName(bytes.toString())} is not the name of an entry`)
      }
      return Buffer.concat([Buffer.from(`${self}/`), bytes])
    },
    isStill() {
      if (throughDescriptor) return true
      const now = lstatSync(path, { bigint: true, throwIfNoEntry: false })
      return now?.dev === dev && now.ino === ino && (parent?.isStill() ?? true)
    },
    close,
    [Symbol.dispose]: close,
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
    const seen = lookAt(parent, name)
    if (seen === undefined) return refused(problem('missing', shown, 'does not exist'))
    if (!seen.isDirectory()) return refused(notAFolder(shown, seen))
    const fd = openSync(parent.at(name), FOLDER)
    const opened = directoryOf(fd, `${parent.self}/${name}`, shown, parent.throughDescriptor, parent)
    if (opened.dev === seen.dev && opened.ino === seen.ino && opened.isStill()) {
      return { ok: true, value: opened }
    }
    opened.close()
    return refused(changed(shown))
  } catch (error) {
    return refused(replacedOr(error, shown))
  }
}

/** Throws the problem instead of returning it. */
export function mustOpen<T>(opened: Opened<T>): T {
  if (opened.ok) return opened.value
  throw new ProblemError(opened.error)
}

/** Opens a folder of the protocol in a workspace, such as outbox/. Throws its problem. */
export function openPart(workspace: string, name: string, shown: string = name): Directory {
  using root = openDirectory(workspace, { shown: '' })
  return mustOpen(openFolder(root, name, shown))
}

/** Opens the folders along a path, one inside the other, and keeps only the last. Without segments, returns the root, valid only while the root is open. */
export function openFolders(root: Directory, segments: readonly string[]): Opened<Directory> {
  let current = root
  for (const segment of segments) {
    const next = openFolder(current, segment)
    if (current !== root) current.close()
    if (!next.ok) return next
    current = next.value
  }
  return { ok: true, value: current === root ? borrow(root) : current }
}

/** The same open folder for a caller that closes what it gets: only its owner closes it. */
export function borrow(directory: Directory): Directory {
  return { ...directory, close() {}, [Symbol.dispose]() {} }
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
    return refused(replacedOr(error, shown))
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
    return refused(replacedOr(error, shown))
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

/** The entry existed a moment ago: if it is missing or different now, it was replaced. */
function replacedOr(error: unknown, shown: string): WorkspaceProblem {
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

/** At most `most` names in a folder, as bytes: a folder with a million entries is not read to its end. */
export function listNames(directory: Directory, most: number): Buffer[] {
  return [...namesIn(directory).take(most)]
}

/** All names, without keeping all of them in memory. */
export function* namesIn(directory: Directory): Generator<Buffer, void> {
  const listing = opendirSync(directory.self, { encoding: 'buffer' as BufferEncoding, bufferSize: 1024 })
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

/** The longest time to block the event loop. */
const MAX_BLOCK_MS = 4
let lastTurn = 0

/** Lets other work run from time to time between files, which are read and written synchronously. Throws after an abort. */
export async function nextTurn(signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted()
  if (performance.now() - lastTurn < MAX_BLOCK_MS) return
  await setImmediate()
  lastTurn = performance.now()
}

/** Linux: opens only the location, which needs no permission on the file. Node has no constant for it. */
const O_PATH = 0o10000000
/** Read, write and enter. */
const OWNER = 0o700

/** Changes the mode of a folder, never of a link's target. */
export function changeMode(path: string | Buffer, change: (mode: number) => number): void {
  if (process.platform !== 'linux') {
    chmodSync(path, change(lstatSync(path).mode & 0o7777))
    return
  }
  const fd = openSync(path, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  try {
    chmodSync(`${DESCRIPTORS}/${fd}`, change(fstatSync(fd).mode & 0o7777))
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

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Control characters, line separators and bidirectional controls. */
const UNPRINTABLE = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/u
const EVERY_UNPRINTABLE = new RegExp(UNPRINTABLE.source, 'gu')

const LONGEST_NAME = 255
const LONGEST_SHOWN = 160

interface BadName {
  /** The name in printable form. */
  shown: string
  why: string
}

/** The name of an entry as text, if it is safe to print and to store. Agents may use any bytes but a slash and zero. */
export function readName(bytes: Buffer): Result<string, BadName> {
  let name: string
  try {
    name = decoder.decode(bytes)
  } catch {
    return failure({ shown: showBytes(bytes), why: 'has a name that is not UTF-8' })
  }
  const why = faultOf(name)
  return why === undefined ? { ok: true, value: name } : failure({ shown: showName(name), why })
}

/** The problem with a name, or undefined. */
function faultOf(name: string): string | undefined {
  if (name === '' || name === '.' || name === '..') return 'has an invalid name: it is empty, "." or ".."'
  if (name.includes('/')) return 'has a slash in its name'
  if (!name.isWellFormed()) return 'has a name that is not UTF-8'
  if (UNPRINTABLE.test(name)) return 'has control characters in its name'
  if (Buffer.byteLength(name) > LONGEST_NAME) return 'has a name that is too long'
  return undefined
}

/** Splits a relative path of a plan into segments, or says what is wrong with it. */
export function splitPath(path: string): Result<string[], string> {
  if (path.startsWith('/')) return { ok: false, error: 'is not a path below the workspace' }
  if (path.includes('\\')) return { ok: false, error: 'has a backslash in it' }
  const segments = path.split('/').filter((segment) => segment !== '' && segment !== '.')
  if (segments.includes('..')) return { ok: false, error: 'leads out of the workspace' }
  const why = segments.map(faultOf).find((fault) => fault !== undefined)
  return why === undefined ? { ok: true, value: segments } : { ok: false, error: why }
}

/** Escapes a name for messages: always one line. */
export function showName(name: string): string {
  const plain = name
    .toWellFormed()
    .replace(EVERY_UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`)
  return clip(plain)
}

function showBytes(bytes: Buffer): string {
  const text = [...bytes].map((byte) =>
    byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`,
  )
  return clip(text.join(''))
}

function clip(text: string): string {
  return text.length <= LONGEST_SHOWN ? text : `${text.slice(0, LONGEST_SHOWN)}…`
}

interface FolderWatch {
  /** The watched folder, open until `close`. */
  readonly directory: Directory
  /** Whether its path still leads to it. */
  isStillThere(): boolean
  close(): void
}

interface FolderWatchOptions {
  readonly folder: string
  /** Name for messages. */
  readonly shown: string
  /** The name of the changed entry or of the folder itself; null if the system does not say. */
  onEvent(name: string | null): void
  onLost(why: string): void
}

/** Watches one folder, so that replaced files are noticed too. */
export function watchFolder({ folder, shown, onEvent, onLost }: FolderWatchOptions): FolderWatch {
  const directory = openDirectory(folder, { shown })
  let watcher: FSWatcher
  try {
    watcher = watch(folder, (_, name) => onEvent(name))
  } catch (error) {
    directory.close()
    if (errnoOf(error) !== 'ENOSPC' && errnoOf(error) !== 'EMFILE') throw error
    const message = `Cannot watch ${folder}: the system's limit on file watches is reached`
    const hint =
      'Raise fs.inotify.max_user_watches and fs.inotify.max_user_instances, or run fewer agents at once.'
    throw new AppError('RUNTIME_FAILED', message, { hint, cause: error })
  }
  watcher.on('error', (error) => onLost(`can no longer be watched (${error.message})`))
  return {
    directory,
    isStillThere() {
      try {
        using now = openDirectory(folder)
        return now.ino === directory.ino && now.dev === directory.dev
      } catch {
        return false
      }
    },
    close() {
      watcher.close()
      directory.close()
    },
  }
}
