import { createHash, hash } from 'node:crypto'
import { closeSync, fstatSync, read, readSync, write } from 'node:fs'
import { basename, dirname } from 'node:path'
import { promisify } from 'node:util'
import { formatBytes } from '../../base/bytes.ts'
import { problem, refuse } from '../problem.ts'
import { type Directory, type Opened, type OpenFile, openDirectory, openFile, showIn } from './directory.ts'
import type { Pace } from './pace.ts'
import { writeAll } from './write-file.ts'

/** Files up to this size are read with one synchronous call. */
const SMALL = 256 * 1024
const PIECE = 1024 * 1024

const readPiece = promisify(read)
const writePiece = promisify(write)

export interface FileContent {
  readonly size: number
  readonly sha256: string
}

/**
 * Reads an open file once: hashes it and, if requested, writes it elsewhere. The file must not change meanwhile. Large files
 * are read in pieces, to limit memory.
 */
export async function readContent(
  file: OpenFile,
  shown: string,
  pace: Pace,
  to?: number,
): Promise<FileContent> {
  const size = Number(file.stat.size)
  if (size > SMALL) {
    const sha256 = await takeLarge(file.fd, size, shown, pace, to)
    checkUnchanged(file, shown)
    return { size, sha256 }
  }
  const bytes = readSmallContent(file, shown)
  if (to !== undefined) writeAll(to, bytes)
  return { size, sha256: hash('sha256', bytes) }
}

function readSmallContent(file: OpenFile, shown: string): Buffer {
  const size = Number(file.stat.size)
  const buffer = Buffer.allocUnsafe(size)
  let done = 0
  while (done < size) {
    const count = readSync(file.fd, buffer, done, size - done, done)
    if (count === 0) changed(shown)
    done += count
  }
  checkUnchanged(file, shown)
  return buffer
}

function checkUnchanged({ fd, stat }: OpenFile, shown: string): void {
  const after = fstatSync(fd, { bigint: true })
  if (after.size !== stat.size || after.mtimeNs !== stat.mtimeNs) changed(shown)
}

async function takeLarge(
  fd: number,
  size: number,
  shown: string,
  pace: Pace,
  to: number | undefined,
): Promise<string> {
  const digest = createHash('sha256')
  const buffer = Buffer.allocUnsafe(PIECE)
  for (let done = 0; done < size; ) {
    await pace.rest()
    const { bytesRead } = await readPiece(fd, buffer, 0, Math.min(PIECE, size - done), done)
    if (bytesRead === 0) changed(shown)
    digest.update(buffer.subarray(0, bytesRead))
    if (to !== undefined) {
      for (let at = 0; at < bytesRead; ) {
        at += (await writePiece(to, buffer, at, bytesRead - at, done + at)).bytesWritten
      }
    }
    done += bytesRead
  }
  return digest.digest('hex')
}

function changed(shown: string): never {
  refuse('changed', shown, 'was changed while it was being read')
}

/** Reads a whole file up to a limit. Refuses a file with a second name, which may be outside. */
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
      const why = `is ${size === most ? `${stat.size} bytes` : size} large, and ${most} is the limit`
      return { ok: false, error: problem('too_large', shown, why) }
    }
    return { ok: true, value: readWhole(fd, Number(stat.size)) }
  } finally {
    closeSync(fd)
  }
}

/** The file may have become shorter; anything appended now is read next time. */
function readWhole(fd: number, size: number): Buffer {
  const buffer = Buffer.allocUnsafe(size)
  let done = 0
  while (done < size) {
    const count = readSync(fd, buffer, done, size - done, done)
    if (count === 0) break
    done += count
  }
  return buffer.subarray(0, done)
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
    const folder = openDirectory(dirname(path))
    try {
      return readPartIn(folder, basename(path), most, which)
    } finally {
      folder.close()
    }
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
