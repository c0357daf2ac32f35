import { randomBytes } from 'node:crypto'
import { existsSync, realpathSync, renameSync, rmdirSync, unlinkSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { errnoOf, ProblemError, problem, problemOf } from '../problem.ts'
import {
  changeMode,
  type Directory,
  lookAt,
  namesIn,
  nextTurn,
  openDirectory,
  openFolder,
  showIn,
} from './directory.ts'

const DISK_ERRORS: ReadonlySet<string> = new Set(['EROFS', 'ENOSPC', 'EDQUOT'])
const NOT_EMPTY: ReadonlySet<string | undefined> = new Set(['ENOTEMPTY', 'EEXIST'])

/** An agent can nest folders until their path is longer than any message should be. */
const LONGEST_SHOWN = 4096

/** Removes a file or a folder with everything in it, but nothing that a link in it leads to. */
export async function removeTree(parent: Directory, name: string, signal?: AbortSignal): Promise<void> {
  const shown = showIn(parent, name)
  const found = lookAt(parent, name)
  if (found === undefined) return
  if (!found.isDirectory()) return naming(shown, () => unlinkSync(parent.at(name)))
  naming(shown, () => allowAccess(parent, name))
  const root = openFolder(parent, name)
  if (!root.ok) throw new ProblemError(root.error)
  try {
    await emptyRoot(root.value, signal)
  } finally {
    root.value.close()
  }
  naming(shown, () => rmdirSync(parent.at(name)))
}

/**
 * Moves each folder up to the root under a plain name before it is emptied: any depth then takes two open folders, no path
 * grows too long, and the system refuses to move a mount point before anything in it is deleted.
 */
async function emptyRoot(root: Directory, signal: AbortSignal | undefined): Promise<void> {
  const stem = `.removing-${randomBytes(6).toString('hex')}-`
  const waiting: { place: string; shown: string }[] = []
  let moved = 0

  function removeEntry(directory: Directory, name: Buffer): void {
    const isLong = directory.shown.length > LONGEST_SHOWN
    const shown = isLong ? directory.shown : showIn(directory, name.toString())
    try {
      if (lookAt(directory, name)?.isDirectory()) rmdirSync(directory.at(name))
      else unlinkSync(directory.at(name))
    } catch (error) {
      const code = errnoOf(error)
      if (code === 'ENOENT') return
      if (!NOT_EMPTY.has(code)) throw irremovable(error, shown)
      const place = `${stem}${moved++}`
      naming(shown, () => {
        // A folder must be writable itself to move elsewhere: its `..` changes.
        allowAccess(directory, name)
        renameSync(directory.at(name), root.at(place))
      })
      waiting.push({ place, shown })
    }
  }

  async function empty(directory: Directory): Promise<void> {
    for (let isEmpty = false; !isEmpty; ) {
      isEmpty = true
      for (const name of namesIn(directory)) {
        if (directory === root && name.toString('latin1').startsWith(stem)) continue
        isEmpty = false
        removeEntry(directory, name)
        await nextTurn(signal)
      }
    }
  }

  await empty(root)
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { place, shown } = next
    const folder = openFolder(root, place, shown)
    if (!folder.ok) throw new ProblemError(folder.error)
    try {
      await empty(folder.value)
    } finally {
      folder.value.close()
    }
    naming(shown, () => rmdirSync(root.at(place)))
  }
}

/** An agent, or Orchub itself, may have made a folder read-only. */
function allowAccess(directory: Directory, name: string | Buffer): void {
  try {
    changeMode(directory.at(name), () => 0o700)
  } catch (error) {
    // Another user owns it, and may allow the removal.
    if (errnoOf(error) !== 'EPERM') throw error
  }
}

export function naming<T>(shown: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw irremovable(error, shown)
  }
}

/** Names the entry as its user knows it: through an open folder its path is /proc/self/fd/22. */
function irremovable(error: unknown, shown: string): unknown {
  const code = errnoOf(error)
  if (code === undefined) return error
  if (DISK_ERRORS.has(code)) return new ProblemError(problemOf(error, shown))
  const why =
    code === 'EBUSY' ? 'cannot be removed: something is mounted there' : `cannot be removed (${code})`
  return new ProblemError(problem('irremovable', shown, why))
}

/** Removes a folder with anything that an agent has put there, but nothing that a link leads to. */
export async function removeFolder(path: string, signal?: AbortSignal): Promise<void> {
  if (!existsSync(dirname(path))) return
  // Links above the folder itself are the user's own.
  using parent = openDirectory(realpathSync(dirname(path)))
  await removeTree(parent, basename(path), signal)
}
