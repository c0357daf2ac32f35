/** The files in `_logs/` of a run. Any agent of the run can reach them, so that what stands there may be no file of ours. */
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'

const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants

/** A link is not followed, and a pipe does not hold us up. */
const SAFELY = O_NOFOLLOW | O_NONBLOCK

/** Makes the folder of a run's logs, with an empty file of exit codes in it, where they are not there. */
export function makeLogs(folder: string, exitsFile: string): void {
  if (!isFolder(folder)) {
    rmSync(folder, { force: true })
    mkdirSync(folder, { recursive: true })
  }
  if (!isFile(exitsFile)) rmSync(exitsFile, { recursive: true, force: true })
  try {
    closeSync(openSync(exitsFile, O_WRONLY | O_CREAT | O_EXCL | SAFELY, 0o644))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

function isFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}

/** For a new file. What the same attempt printed before a power cut took it back is put aside. */
export function makeRoom(file: string): void {
  const found = lstatSync(file, { throwIfNoEntry: false })
  if (found === undefined) return
  const before = `${file}.before`
  if (found.isFile() && found.size > 0) {
    rmSync(before, { recursive: true, force: true })
    renameSync(file, before)
  } else rmSync(file, { recursive: true })
}

export function isFile(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() ?? false
}

/** Undefined where there is no such file. */
export function readTail(file: string, most: number): Buffer | undefined {
  return withFile(file, O_RDONLY, (fd, size) => {
    const count = Math.min(size, most)
    return readAt(fd, size - count, count)
  })
}

export function sizeOf(file: string): number {
  const found = lstatSync(file, { throwIfNoEntry: false })
  return found?.isFile() ? found.size : 0
}

export function appendLine(file: string, line: string): void {
  withFile(file, O_WRONLY | O_APPEND, (fd) => void writeSync(fd, `${line}\n`))
}

/** A new one, to be closed by whoever asked for it. */
export function openLog(file: string): number {
  return openSync(file, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | SAFELY, 0o644)
}

function withFile<T>(file: string, flags: number, use: (fd: number, size: number) => T): T | undefined {
  let fd: number
  try {
    fd = openSync(file, flags | SAFELY)
  } catch {
    return undefined
  }
  try {
    const found = fstatSync(fd)
    return found.isFile() ? use(fd, found.size) : undefined
  } catch {
    return undefined
  } finally {
    closeSync(fd)
  }
}

function readAt(fd: number, from: number, count: number): Buffer {
  const buffer = Buffer.alloc(count)
  let done = 0
  while (done < count) {
    const read = readSync(fd, buffer, done, count - done, from + done)
    if (read === 0) break
    done += read
  }
  return buffer.subarray(0, done)
}
