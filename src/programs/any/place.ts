/**
 * How far the log was read, beside the log. The file outlives the service; it need not outlive the machine, for
 * neither does the pane.
 */
import { constants, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

/** As many utterances wait for their answers at a time; the next one waits for the first of them. */
export const MAX_SAYING = 16

const End = z.int().min(0)
const Place = z.object({
  /** All before it was said, and what it asked for was done. */
  offset: z.int().min(0),
  /** What is from there to the last of these is being said: said again, it must be cut at the same places. */
  saying: z.union([z.array(End).max(MAX_SAYING), End.transform((end) => [end])]).default([]),
  isBracketed: z.boolean(),
  /** All before it was given back to the disk, and cannot be looked up. */
  released: z.int().min(0).default(0),
})
export type Place = z.output<typeof Place>

const FILE = 'pane.place.json'

export function readPlace(folder: string): Place {
  try {
    return Place.parse(JSON.parse(readFileSync(join(folder, FILE), 'utf8')))
  } catch {
    return { offset: 0, saying: [], isBracketed: false, released: 0 }
  }
}

/** Longer than any place: what stands in the file is always all of one. */
const LENGTH = 512

/** Kept open by whoever moves the place: opening the file takes longer than writing it, on the way of every message. */
export function openPlace(folder: string): number {
  return openSync(join(folder, FILE), constants.O_WRONLY | constants.O_CREAT, 0o600)
}

/**
 * Sync: it goes before the words it is about. In place, for a new file and a rename take ten times as long. So few
 * bytes are written whole or not at all when the service is killed meanwhile.
 */
export function writePlace(file: number, place: Place): void {
  writeSync(file, JSON.stringify(place).padEnd(LENGTH), 0)
}

export function placeFile(folder: string): string {
  return join(folder, FILE)
}
