/** Reads a growing file by file events, from an offset on. */
import { execFile } from 'node:child_process'
import { closeSync, fstatSync, openSync, readSync, watch } from 'node:fs'

export interface LogReader {
  /** The bytes between two offsets. */
  read(from: number, to: number): Buffer
  /** Checks for more, and calls `onEnd` in either case. */
  look(): void
  close(): void
}

interface LogReaderOptions {
  path: string
  from: number
  /** Bytes, in order. */
  onBytes(bytes: Buffer): void
  /** Everything written so far has been passed on. */
  onEnd(): void
}

const CHUNK = 1 << 16
const chunk = Buffer.allocUnsafe(CHUNK)

export function openLogReader({ path, from, onBytes, onEnd }: LogReaderOptions): LogReader {
  // Created here if the pipe has not yet; the pipe appends.
  const file = openSync(path, 'a+', 0o600)
  let offset = from
  let isScheduled = false
  let isClosed = false
  const watcher = watch(path, schedule)
  // Read anyway: an agent whose log cannot be watched must not fail.
  watcher.on('error', () => {})
  schedule()

  /** Reads a chunk at a time, so that a flood of output does not block other agents. */
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
 * Frees the disk blocks that were read: the file keeps its length, so that offsets stay valid and its writer
 * notices nothing. If the system cannot do that, the file grows.
 */
export function releaseBefore(path: string, offset: number): void {
  execFile('fallocate', ['--punch-hole', '--offset', '0', '--length', String(offset), path], () => {})
}
