/**
 * The log of a pane: reads it as it grows, and stores beside it how far it was processed. The position outlives
 * the service; it need not outlive a reboot, since the pane does not either.
 */

import { execFile } from 'node:child_process'
import { closeSync, constants, fstatSync, openSync, readFileSync, readSync, watch, writeSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

/** Maximum number of texts that are being processed; the next one waits for the first of them. */
export const MAX_OPEN_TEXTS = 16

const LogPosition = z.object({
  /** Everything before it was passed on and processed. */
  offset: z.int().min(0),
  /** Ends of the texts after it that were passed on: repeated, they must be cut at the same offsets. */
  openTexts: z.array(z.int().min(0)).max(MAX_OPEN_TEXTS),
  isBracketed: z.boolean(),
  /** Everything before it was freed on disk, and cannot be searched. */
  released: z.int().min(0),
})
export type LogPosition = z.output<typeof LogPosition>

export const positionFile = (folder: string) => join(folder, 'pane-position.json')

export function readLogPosition(folder: string): LogPosition {
  try {
    return LogPosition.parse(JSON.parse(readFileSync(positionFile(folder), 'utf8')))
  } catch {
    return { offset: 0, openTexts: [], isBracketed: false, released: 0 }
  }
}

/** Longer than any position, so that the file always holds exactly one. */
const POSITION_LENGTH = 512

/**
 * Synchronous, because it is written before the text it describes is passed on. In place: so few bytes are written
 * completely or not at all if the service is killed.
 */
export function saveLogPosition(folder: string, position: LogPosition): void {
  const file = openSync(positionFile(folder), constants.O_WRONLY | constants.O_CREAT, 0o600)
  try {
    writeSync(file, JSON.stringify(position).padEnd(POSITION_LENGTH), 0)
  } finally {
    closeSync(file)
  }
}

interface PaneLogOptions {
  path: string
  from: number
  /** Bytes, in order. */
  onBytes(bytes: Buffer): void
  /** Everything written so far has been passed on. */
  onEnd(): void
}

const CHUNK = 1 << 16
const chunk = Buffer.allocUnsafe(CHUNK)

export function openPaneLog({ path, from, onBytes, onEnd }: PaneLogOptions) {
  // Created here if the pipe has not yet; the pipe appends.
  const file = openSync(path, 'a+', 0o600)
  let offset = from
  let isScheduled = false
  let isClosed = false
  const watcher = watch(path, schedule)
  // Ignored: an agent whose log cannot be watched must not fail.
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
    /** Checks for more, and calls `onEnd` in either case. */
    look: schedule,
    /** The bytes between two offsets. */
    read(start: number, end: number): Buffer {
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
