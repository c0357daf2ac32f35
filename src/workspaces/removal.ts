import { randomBytes } from 'node:crypto'
import { renameSync, rmdirSync, unlinkSync } from 'node:fs'
import { type Directory, lookAt, openFolder, showIn } from './directory.ts'
import { changeMode } from './folder-mode.ts'
import { namesIn } from './listing.ts'
import type { Pace } from './pace.ts'
import { errnoOf, ProblemError, problem, problemOf } from './problem.ts'

/** A folder that waits, under a plain name and at the root of what is removed, until all that was in it is gone. */
interface SetAside {
  readonly place: string
  /** What it was called, and in which folder; undefined: in the root. */
  readonly name: Buffer
  readonly above: SetAside | undefined
  readonly mode: number
  /** Where it was, for messages. */
  readonly shown: string
}

/** Longer than any path that a message is read for: a folder can be deeper than a text can be long. */
const LONGEST_SHOWN = 4096

const OF_THE_DISK: ReadonlySet<string> = new Set(['EROFS', 'ENOSPC', 'EDQUOT'])

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
    await emptyTree(root, pace, gone)
    naming(shown, () => rmdirSync(parent.at(name)))
    gone()
  } catch (error) {
    restoreMode(parent, name, mode)
    throw error
  } finally {
    root.close()
  }
}

async function emptyTree(root: Directory, pace: Pace, gone: () => void): Promise<void> {
  const stem = `.removing-${randomBytes(6).toString('hex')}-`
  const aside: SetAside[] = []
  let moved = 0

  async function empty(directory: Directory, self: SetAside | undefined): Promise<void> {
    for (let isEmpty = false; !isEmpty; ) {
      isEmpty = true
      for (const entry of namesIn(directory)) {
        if (self === undefined && entry.toString('latin1').startsWith(stem)) continue
        isEmpty = false
        removeEntry(directory, entry, self)
        const rest = pace.rest()
        if (rest !== undefined) await rest
      }
    }
  }

  function removeEntry(directory: Directory, entry: Buffer, above: SetAside | undefined): void {
    try {
      if (lookAt(directory, entry)?.isDirectory()) setAside(directory, entry, above)
      else {
        unlinkSync(directory.at(entry))
        gone()
      }
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw irremovable(error, showIn(directory, entry.toString()))
    }
  }

  function setAside(directory: Directory, name: Buffer, above: SetAside | undefined): void {
    const place = `${stem}${moved++}`
    // To be moved, a folder must be writable itself: its `..` changes.
    const mode = allowAccess(directory, name)
    try {
      renameSync(directory.at(name), root.at(place))
    } catch (error) {
      restoreMode(directory, name, mode)
      throw error
    }
    const isLong = directory.shown.length > LONGEST_SHOWN
    const shown = isLong ? directory.shown : showIn(directory, name.toString())
    aside.push({ place, name, above, mode, shown })
  }

  try {
    for (;;) {
      const last = aside.at(-1)
      const waiting = aside.length
      await inFolder(root, last, (directory) => empty(directory, last))
      // Those inside go first, so that each can still be put back where it was.
      if (aside.length > waiting) continue
      if (last === undefined) return
      naming(last.shown, () => rmdirSync(root.at(last.place)))
      gone()
      aside.pop()
    }
  } catch (error) {
    const astray = await putBack(root, aside)
    throw astray.length === 0 ? error : withPlaces(error, root, astray)
  }
}

/** The last one first. Gives those that stay where they were set aside. */
async function putBack(root: Directory, aside: readonly SetAside[]): Promise<SetAside[]> {
  const astray: SetAside[] = []
  for (const folder of aside.toReversed()) {
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

function withPlaces(error: unknown, root: Directory, astray: readonly SetAside[]): ProblemError {
  const begun = problem('irremovable', root.shown, 'is not removed to its end')
  const { code, path, message } = error instanceof ProblemError ? error.problem : begun
  const places = astray.map(({ shown, place }) => `${shown} is now ${showIn(root, place)}`)
  return new ProblemError({ code, path, message: [message, ...places].join('; ') })
}

async function inFolder(
  root: Directory,
  folder: SetAside | undefined,
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

/** An agent, or we ourselves, may have made a folder read-only. Gives the mode before. */
function allowAccess(directory: Directory, name: string | Buffer): number {
  return changeMode(directory.at(name), () => 0o700)
}

/** Why it is restored says more than why it could not be. */
function restoreMode(directory: Directory, name: string | Buffer, mode: number): void {
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
