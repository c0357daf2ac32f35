import { randomBytes } from 'node:crypto'
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  renameSync,
  rmdirSync,
  unlinkSync,
} from 'node:fs'
import { type Directory, lookAt, openFolder, showIn } from './directory.ts'
import { listNames } from './listing.ts'
import type { Pace } from './pace.ts'
import { errnoOf, ProblemError } from './problem.ts'

/** Linux: an open file that is only a place, for which no permission on it is needed. Node has no name for it. */
const O_PATH = 0o10000000

const BATCH = 1000

/**
 * Removes whatever is at a name, and leaves what links in it lead to alone. Folders inside are first moved up beside it:
 * any depth then takes one open folder, and no path grows too long.
 */
export async function removeTree(parent: Directory, name: string, pace: Pace): Promise<void> {
  const found = lookAt(parent, name)
  if (found === undefined) return
  if (!found.isDirectory()) return naming(showIn(parent, name), () => unlinkSync(parent.at(name)))
  const stem = `.removing-${randomBytes(6).toString('hex')}`
  const waiting = [name]
  let moved = 0
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    await empty(parent, next, pace, () => {
      const place = `${stem}-${moved++}`
      waiting.push(place)
      return place
    })
    naming(showIn(parent, next), () => rmdirSync(parent.at(next)))
  }
}

async function empty(parent: Directory, name: string, pace: Pace, newPlace: () => string): Promise<void> {
  naming(showIn(parent, name), () => allowAccess(parent, name))
  const opened = openFolder(parent, name)
  if (!opened.ok) throw new ProblemError(opened.problem)
  const directory = opened.value
  try {
    for (let names = listNames(directory, BATCH); names.length > 0; names = listNames(directory, BATCH)) {
      for (const entry of names) {
        removeEntry(parent, directory, entry, newPlace)
        const rest = pace.rest()
        if (rest !== undefined) await rest
      }
    }
  } finally {
    directory.close()
  }
}

function removeEntry(parent: Directory, directory: Directory, entry: Buffer, newPlace: () => string): void {
  try {
    if (lookAt(directory, entry)?.isDirectory()) {
      // To be moved, a folder must be writable itself: its `..` changes.
      allowAccess(directory, entry)
      renameSync(directory.at(entry), parent.at(newPlace()))
    } else unlinkSync(directory.at(entry))
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw named(error, showIn(directory, entry.toString()))
  }
}

function naming(shown: string, work: () => void): void {
  try {
    work()
  } catch (error) {
    throw named(error, shown)
  }
}

/** Through an open folder a path is /proc/self/fd/22: whoever reads of a fault knows the place by its own. */
function named(error: unknown, shown: string): unknown {
  if (errnoOf(error) === undefined) return error
  const fault = error as NodeJS.ErrnoException
  fault.message = fault.message.replace(/'.*'$/s, () => `'${shown}'`)
  fault.path = shown
  return fault
}

/** Throws what the disk will say to a removal, so that nothing need be done for one that cannot be. Changes nothing. */
export function checkRemovable(parent: Directory, name: string): void {
  naming(showIn(parent, name), () => changeMode(parent.at(name), (mode) => mode))
  naming(parent.shown, () => accessSync(parent.self, constants.W_OK | constants.X_OK))
}

/** An agent, or we ourselves, may have made a folder read-only. */
function allowAccess(directory: Directory, name: string | Buffer): void {
  changeMode(directory.at(name), () => 0o700)
}

function changeMode(path: string | Buffer, change: (mode: number) => number): void {
  if (process.platform !== 'linux') {
    chmodSync(path, change(lstatSync(path).mode & 0o7777))
    return
  }
  const fd = openSync(path, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  try {
    chmodSync(`/proc/self/fd/${fd}`, change(fstatSync(fd).mode & 0o7777))
  } finally {
    closeSync(fd)
  }
}
