/**
 * The files in `_logs/` of a run: what an attempt printed and how it ended. Every agent of the run can write there, so
 * nothing here follows a link, waits for a pipe or reuses a file that is already there.
 */
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
} from 'node:fs'

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY, O_APPEND } = constants

export function makeLogFolder(folder: string): void {
  if (lstatSync(folder, { throwIfNoEntry: false })?.isDirectory()) return
  rmSync(folder, { force: true })
  mkdirSync(folder, { recursive: true })
}

/** Opens a new log. After a power cut the same attempt starts again: what it printed before is kept as `.before`. */
export function openLog(file: string): number {
  if (sizeOf(file) > 0) {
    rmSync(`${file}.before`, { recursive: true, force: true })
    renameSync(file, `${file}.before`)
  }
  return openNew(file, O_APPEND)
}

/** Opens a new file in place of whatever has that name; the caller closes it. */
export function openNew(file: string, flags = 0): number {
  rmSync(file, { recursive: true, force: true })
  return openSync(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NONBLOCK | flags, 0o644)
}

/** 0 if there is no such file. */
export function sizeOf(file: string): number {
  const found = lstatSync(file, { throwIfNoEntry: false })
  return found?.isFile() ? found.size : 0
}

/** Reads the first or the last `most` bytes; an empty text if there is no such file. */
export function readPart(file: string, most: number, part: 'head' | 'tail'): string {
  let fd: number
  try {
    fd = openSync(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  } catch {
    return ''
  }
  try {
    const found = fstatSync(fd)
    if (!found.isFile()) return ''
    const count = Math.min(found.size, most)
    const buffer = Buffer.alloc(count)
    const read = readSync(fd, buffer, 0, count, part === 'head' ? 0 : found.size - count)
    return buffer.toString('utf8', 0, read)
  } catch {
    return ''
  } finally {
    closeSync(fd)
  }
}
