import { accessSync, type BigIntStats, constants } from 'node:fs'
import { type Directory, lookAt, openFolder, showIn } from './directory.ts'
import { readName } from './entry-name.ts'
import { changeMode } from './folder-mode.ts'
import { namesIn } from './listing.ts'
import type { Pace } from './pace.ts'
import { errnoOf, refuse } from './problem.ts'
import { irremovable, naming } from './removal.ts'

/** Each is held open while those inside are looked at. What is deeper shows when it is removed. */
const DEEPEST = 100

/**
 * Throws what the disk will say to a removal, as far as that can be told before, so that nothing need be done for one that
 * cannot be. Changes nothing.
 */
export async function checkRemovable(parent: Directory, name: string, pace: Pace): Promise<void> {
  const seen = lookAt(parent, name)
  if (seen === undefined) return
  const { dev } = seen
  if (seen.isDirectory()) await checkFolder(parent, name, 0)
  naming(parent.shown, () => accessSync(parent.self, constants.W_OK | constants.X_OK))

  async function checkFolder(above: Directory, folder: string, depth: number): Promise<void> {
    // Of another owner, or one that nobody may change.
    naming(showIn(above, folder), () => changeMode(above.at(folder), (mode) => mode))
    if (depth === DEEPEST) return
    const opened = openFolder(above, folder)
    // Closed by its owner, which we are: it can be opened for the removal.
    if (!opened.ok) return
    const directory = opened.value
    try {
      for (const bytes of namesIn(directory)) {
        const rest = pace.rest()
        if (rest !== undefined) await rest
        const stat = lookAt(directory, bytes)
        if (stat?.isDirectory()) await checkInner(directory, bytes, stat, depth)
        else if (stat?.isFile()) checkFile(directory, bytes)
      }
    } finally {
      directory.close()
    }
  }

  async function checkInner(above: Directory, bytes: Buffer, stat: BigIntStats, depth: number) {
    const read = readName(bytes)
    if (stat.dev !== dev) {
      refuse('irremovable', showIn(above, bytes.toString()), 'cannot be removed: something is mounted there')
    }
    if (read.ok) await checkFolder(above, read.name, depth + 1)
  }
}

/** To remove a file takes rights on its folder only, but for one that nobody may change: of that alone it is EPERM. */
function checkFile(directory: Directory, name: Buffer): void {
  try {
    accessSync(directory.at(name), constants.W_OK)
  } catch (error) {
    if (errnoOf(error) === 'EPERM') throw irremovable(error, showIn(directory, name.toString()))
  }
}
