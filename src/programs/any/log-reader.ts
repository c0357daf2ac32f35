/**
 * The log of a pane: reads it as it grows, and stores beside it how far it was processed. The position outlives
 * the service; it need not outlive a reboot, since the pane does not either.
 */

import { execFile } from 'node:child_process'
import { closeSync, constants, fstatSync, openSync, readFileSync, readSync, watch, writeSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

/** Maximum number of utterances that wait for their responses; the next one waits for the first of them. */
export const MAX_SAYING = 16

const End = z.int().min(0)
const LogPosition = z.object({
  /** Everything before it was passed on and processed. */
  offset: z.int().min(0),
  /** From there to the last of these is in progress: repeated, it must be cut at the same offsets. */
  saying: z.union([z.array(End).max(MAX_SAYING), End.transform((end) => [end])]).default([]),
  isBracketed: z.boolean(),
  /** Everything before it was freed on disk, and cannot be searched. */
  released: z.int().min(0).default(0),
})
export type LogPosition = z.output<typeof LogPosition>

const FILE = 'pane.place.json'

export function readLogPosition(folder: string): LogPosition {
  try {
    return LogPosition.parse(JSON.parse(readFileSync(join(folder, FILE), 'utf8')))
  } catch {
    return { offset: 0, saying: [], isBracketed: false, released: 0 }
  }
}

/** Longer than any position, so that the file always holds exactly one. */
const LENGTH = 512

/** Kept open, because opening takes longer than writing, and it is in the path of every message. */
export function openPositionFile(folder: string): number {
  return openSync(join(folder, FILE), constants.O_WRONLY | constants.O_CREAT, 0o600)
}

/**
 * Synchronous: written before the text it describes. In place, because a new file and a rename take ten times
 * as long. So few bytes are written completely or not at all if the service is killed meanwhile.
 */
export function writeLogPosition(file: number, place: LogPosition): void {
  writeSync(file, JSON.stringify(place).padEnd(LENGTH), 0)
}

export function positionFile(folder: string): string {
  return join(folder, FILE)
}

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
