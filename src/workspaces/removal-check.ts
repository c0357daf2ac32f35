import { accessSync, type BigIntStats, constants, realpathSync } from 'node:fs'
import { type Directory, lookAt, openFolder, showIn } from './directory.ts'
import { readName, showName } from './entry-name.ts'
import { namesIn } from './listing.ts'
import { mountsBelow } from './mounts.ts'
import type { Pace } from './pace.ts'
import { errnoOf, refuse } from './problem.ts'
import { irremovable, naming } from './removal.ts'

/** Each is held open while those inside are looked at. What is deeper shows when it is removed. */
const DEEPEST = 100
const { R_OK, W_OK, X_OK } = constants

/**
 * Throws what the disk will say to a removal, as far as that can be told before, so that nothing need be done for one that
 * cannot be. Changes nothing.
 */
export async function checkRemovable(parent: Directory, name: string, pace: Pace): Promise<void> {
  const seen = lookAt(parent, name)
  if (seen === undefined) return
  if (seen.isDirectory()) await checkTree(seen)
  naming(parent.shown, () => accessSync(parent.self, W_OK | X_OK))

  async function checkTree(stat: BigIntStats): Promise<void> {
    const [mount] = mountsBelow(`${realpathSync(parent.self.toString())}/${name}`)
    if (mount !== undefined)
      refuse('irremovable', showName(mount), 'cannot be removed: something is mounted there')
    await checkFolder(parent, name, stat, 0)
  }

  async function checkFolder(
    above: Directory,
    folder: string,
    stat: BigIntStats,
    depth: number,
  ): Promise<void> {
    const fault = faultOf(above, folder)
    // Of one that nobody may change, it is EPERM. To one that is closed its owner has a right all the same.
    if (
      fault !== undefined &&
      (errnoOf(fault) !== 'EACCES' || (stat.uid !== OWN && !isEmpty(above, folder)))
    ) {
      throw irremovable(fault, showIn(above, folder))
    }
    const opened = depth === DEEPEST ? undefined : openFolder(above, folder)
    if (opened?.ok !== true) return
    const directory = opened.value
    try {
      for (const bytes of namesIn(directory)) {
        const rest = pace.rest()
        if (rest !== undefined) await rest
        const found = lookAt(directory, bytes)
        const read = readName(bytes)
        if (found?.isDirectory() && read.ok) await checkFolder(directory, read.name, found, depth + 1)
        else if (found?.isFile()) checkFile(directory, bytes)
      }
    } finally {
      directory.close()
    }
  }
}

const OWN = BigInt(process.getuid?.() ?? -1)

function faultOf(above: Directory, folder: string): unknown {
  try {
    accessSync(above.at(folder), R_OK | W_OK | X_OK)
  } catch (error) {
    return error
  }
}

function isEmpty(above: Directory, folder: string): boolean {
  const opened = openFolder(above, folder)
  if (!opened.ok) return false
  try {
    for (const _ of namesIn(opened.value)) return false
    return true
  } finally {
    opened.value.close()
  }
}

/** To remove a file takes rights on its folder only, but for one that nobody may change: of that alone it is EPERM. */
function checkFile(directory: Directory, name: Buffer): void {
  try {
    accessSync(directory.at(name), W_OK)
  } catch (error) {
    if (errnoOf(error) === 'EPERM') throw irremovable(error, showIn(directory, name.toString()))
  }
}
