import { randomBytes } from 'node:crypto'
import { renameSync, rmdirSync, unlinkSync } from 'node:fs'
import { type Directory, lookAt, openFolder, showIn } from './directory.ts'
import { readName } from './entry-name.ts'
import { changeMode } from './folder-mode.ts'
import { namesIn } from './listing.ts'
import type { Pace } from './pace.ts'
import { errnoOf, ProblemError, problem, problemOf } from './problem.ts'

/** A folder that is to be empty. One of the root stays in its place, others are moved up to the root, under a plain name. */
interface Held {
  /** What it is called at the root. */
  readonly place: string
  readonly isMoved: boolean
  /** What it was called, and in which folder; undefined: in the root. */
  readonly name: Buffer
  readonly above: Held | undefined
  /** Undefined: it is of another owner, and was left as it is. */
  readonly mode: number | undefined
  /** Where it was, for messages. */
  readonly shown: string
}

/** Longer than any path that a message is read for: a folder can be deeper than a text can be long. */
const LONGEST_SHOWN = 4096
const MOST_NAMED = 10

const OF_THE_DISK: ReadonlySet<string> = new Set(['EROFS', 'ENOSPC', 'EDQUOT'])
const NOT_EMPTY: ReadonlySet<string | undefined> = new Set(['ENOTEMPTY', 'EEXIST'])

/**
 * Removes whatever is at a name, and leaves what links in it lead to alone. Folders inside are first moved up to its root:
 * any depth then takes one open folder more, and no path grows too long. If it fails, all that is left is where it was.
 * `gone` is told of each file and folder that is no more.
 */
export async function removeTree(
  parent: Directory,
  name: string,
  pace: Pace,
  gone: () => void = () => {},
): Promise<void> {
  const shown = showIn(parent, name)
  const found = lookAt(parent, name)
  if (found === undefined) return
  if (!found.isDirectory()) {
    naming(shown, () => unlinkSync(parent.at(name)))
    return gone()
  }
  const mode = naming(shown, () => allowAccess(parent, name))
  const opened = openFolder(parent, name)
  if (!opened.ok) throw new ProblemError(opened.problem)
  const root = opened.value
  try {
    await emptyRoot(root, pace, gone)
    naming(shown, () => rmdirSync(parent.at(name)))
    gone()
  } catch (error) {
    restoreMode(parent, name, mode)
    throw error
  } finally {
    root.close()
  }
}

/** What the root itself holds goes last: until then whoever comes after a crash, or a failure, can tell what it was. */
async function emptyRoot(root: Directory, pace: Pace, gone: () => void): Promise<void> {
  const stem = `.removing-${randomBytes(6).toString('hex')}-`
  const inRoot = new Map<string, Held>()
  /** The last one is worked at; each lies in one before it. */
  let held: Held[] = []
  let moved = 0

  async function emptyFolders(): Promise<void> {
    for (const name of namesIn(root)) {
      const rest = pace.rest()
      if (rest !== undefined) await rest
      if (name.toString('latin1').startsWith(stem) || !lookAt(root, name)?.isDirectory()) continue
      held = [hold(name)]
      while (held.length > 0) await emptyLast()
    }
  }

  function hold(name: Buffer): Held {
    const read = readName(name)
    if (!read.ok) return moveUp(root, name, undefined)
    const known = inRoot.get(read.name)
    const shown = showIn(root, read.name)
    const mode = naming(shown, () => allowAccess(root, read.name))
    const folder = { place: read.name, isMoved: false, name, above: undefined, mode, shown }
    if (known === undefined) inRoot.set(read.name, folder)
    return folder
  }

  async function emptyLast(): Promise<void> {
    const last = held.at(-1)!
    const waiting = held.length
    await inFolder(root, last, (directory) => emptyOne(directory, last))
    // Those inside go first, so that each can still be put back where it was.
    if (held.length > waiting) return
    held.pop()
    if (!last.isMoved) return
    naming(last.shown, () => rmdirSync(root.at(last.place)))
    gone()
  }

  async function emptyOne(directory: Directory, self: Held): Promise<void> {
    for (let isEmpty = false; !isEmpty; ) {
      isEmpty = true
      for (const entry of namesIn(directory)) {
        isEmpty = false
        if (!removeEntry(directory, entry)) held.push(moveUp(directory, entry, self))
        const rest = pace.rest()
        if (rest !== undefined) await rest
      }
    }
  }

  /** False: it is a folder with something in it. */
  function removeEntry(directory: Directory, entry: Buffer): boolean {
    try {
      if (lookAt(directory, entry)?.isDirectory()) rmdirSync(directory.at(entry))
      else unlinkSync(directory.at(entry))
      gone()
    } catch (error) {
      const code = errnoOf(error)
      if (NOT_EMPTY.has(code)) return false
      if (code !== 'ENOENT') throw irremovable(error, showIn(directory, entry.toString()))
    }
    return true
  }

  function moveUp(directory: Directory, name: Buffer, above: Held | undefined): Held {
    const place = `${stem}${moved++}`
    const isLong = directory.shown.length > LONGEST_SHOWN
    const shown = isLong ? directory.shown : showIn(directory, name.toString())
    // To be moved, a folder must be writable itself: its `..` changes.
    const mode = naming(shown, () => allowAccess(directory, name))
    try {
      renameSync(directory.at(name), root.at(place))
    } catch (error) {
      restoreMode(directory, name, mode)
      throw irremovable(error, shown)
    }
    return { place, isMoved: true, name, above, mode, shown }
  }

  try {
    for (let isEmpty = false; !isEmpty; ) {
      await emptyFolders()
      isEmpty = true
      for (const name of namesIn(root)) {
        isEmpty = false
        removeEntry(root, name)
        const rest = pace.rest()
        if (rest !== undefined) await rest
      }
    }
  } catch (error) {
    const astray = await putBack(root, held)
    for (const { place, mode } of inRoot.values()) restoreMode(root, place, mode)
    throw astray.length === 0 ? error : withPlaces(error, root, astray)
  }
}

/** The last one first. Gives those that stay where they were moved to. */
async function putBack(root: Directory, held: readonly Held[]): Promise<Held[]> {
  const astray: Held[] = []
  for (const folder of held.toReversed().filter(({ isMoved }) => isMoved)) {
    try {
      await inFolder(root, folder.above, (above) => {
        renameSync(root.at(folder.place), above.at(folder.name))
        restoreMode(above, folder.name, folder.mode)
      })
    } catch {
      astray.push(folder)
    }
  }
  return astray
}

function withPlaces(error: unknown, root: Directory, astray: readonly Held[]): ProblemError {
  const begun = problem('irremovable', root.shown, 'is not removed to its end')
  const { code, path, message } = error instanceof ProblemError ? error.problem : begun
  const places = astray
    .slice(0, MOST_NAMED)
    .map(({ shown, place }) => `${shown} is now ${showIn(root, place)}`)
  const more = astray.length > places.length ? ['and more such'] : []
  return new ProblemError({ code, path, message: [message, ...places, ...more].join('; ') })
}

async function inFolder(
  root: Directory,
  folder: Held | undefined,
  work: (directory: Directory) => void | Promise<void>,
): Promise<void> {
  if (folder === undefined) return await work(root)
  const opened = openFolder(root, folder.place, folder.shown)
  if (!opened.ok) throw new ProblemError(opened.problem)
  try {
    await work(opened.value)
  } finally {
    opened.value.close()
  }
}

/** An agent, or we ourselves, may have made a folder read-only. Gives the mode before; undefined: it is not ours to change. */
function allowAccess(directory: Directory, name: string | Buffer): number | undefined {
  try {
    return changeMode(directory.at(name), () => 0o700)
  } catch (error) {
    // Of another owner: what that one allows may do.
    if (errnoOf(error) === 'EPERM') return undefined
    throw error
  }
}

/** Why it is restored says more than why it could not be. */
function restoreMode(directory: Directory, name: string | Buffer, mode: number | undefined): void {
  if (mode === undefined) return
  try {
    changeMode(directory.at(name), () => mode)
  } catch {
    // It is gone.
  }
}

export function naming<T>(shown: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw irremovable(error, shown)
  }
}

/** Through an open folder a path is /proc/self/fd/22: whoever reads of a fault knows the place by its own. */
export function irremovable(error: unknown, shown: string): unknown {
  const code = errnoOf(error)
  if (code === undefined) return error
  if (OF_THE_DISK.has(code)) return new ProblemError(problemOf(error, shown))
  return new ProblemError(problem('irremovable', shown, `cannot be removed (${code})`))
}
