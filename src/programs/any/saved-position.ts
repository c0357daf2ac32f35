/**
 * How far the log was processed, stored beside it. The file outlives the service; it need not outlive a
 * reboot, since the pane does not either.
 */
import { constants, openSync, readFileSync, writeSync } from 'node:fs'
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
