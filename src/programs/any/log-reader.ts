/** Reads a growing file by file events, from an offset on. */
import { execFile } from 'node:child_process'
import { closeSync, fstatSync, openSync, readSync, watch } from 'node:fs'

export interface LogReader {
  /** All that is there between two offsets. */
  read(from: number, to: number): Buffer
  /** Looks for more, and calls `onEnd` whether there is or not. */
  look(): void
  close(): void
}

export interface LogReaderOptions {
  path: string
  from: number
  /** Bytes, in order. */
  onBytes(bytes: Buffer): void
  /** All that was written so far has been given. */
  onEnd(): void
}

const CHUNK = 1 << 16
const chunk = Buffer.allocUnsafe(CHUNK)

export function openLogReader({ path, from, onBytes, onEnd }: LogReaderOptions): LogReader {
  // Made here if the pipe has not yet: it appends.
  const file = openSync(path, 'a+', 0o600)
  let offset = from
  let isScheduled = false
  let isClosed = false
  const watcher = watch(path, schedule)
  // Read anyway, and an agent whose log cannot be watched is no reason to fall over.
  watcher.on('error', () => {})
  schedule()

  /** A chunk at a time, so that one that floods leaves room for the others. */
  function schedule() {
    if (isScheduled || isClosed) return
    isScheduled = true
    setImmediate(() => {
      isScheduled = false
      if (isClosed) return
      const length = readSync(file, chunk, 0, CHUNK, offset)
      if (length > 0) {
        offset += length
        onBytes(chunk.subarray(0, length))
      }
      if (length === CHUNK) schedule()
      else onEnd()
    })
  }

  return {
    look: schedule,
    read(start, end) {
      const bytes = Buffer.alloc(Math.max(0, Math.min(end, fstatSync(file).size) - start))
      readSync(file, bytes, 0, bytes.length, start)
      return bytes
    },
    close() {
      if (isClosed) return
      isClosed = true
      watcher.close()
      closeSync(file)
    },
  }
}

/**
 * Gives the disk back what was read: the file keeps its length, so that offsets stay true and its writer notices
 * nothing. Where the system cannot do that, the file grows.
 */
export function releaseBefore(path: string, offset: number): void {
  execFile('fallocate', ['--punch-hole', '--offset', '0', '--length', String(offset), path], () => {})
}
