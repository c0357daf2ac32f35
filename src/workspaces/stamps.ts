import { fchmodSync, fstatSync, lstatSync, statfsSync } from 'node:fs'
import type { Directory } from './directory.ts'
import { listNames } from './listing.ts'

interface Stamp {
  readonly dev: bigint
  readonly ino: bigint
  /** Of the last change, whatever it was. Nobody can set it. */
  readonly ctimeNs: bigint
}

/** Of a folder, under an empty path, and of all in it. The same again later: nobody has touched any of it. */
export type Stamps = ReadonlyMap<string, Stamp>

/** Takes the stamps of what is being made, so that nothing can be done to it between its making and its stamp. */
export interface Stamping {
  /** A file that is whole, and still open. */
  file(path: string, fd: number): void
  /** A folder, once nothing more will be put into it, or done to it. */
  folder(path: string, directory: Directory): void
  /** Undefined: somebody else has put something there, or it is too much to be kept. */
  stamps(): Stamps | undefined
}

const MOST = 200
const TRIES = 8
/** ext4, XFS, btrfs. On others (tmpfs is one) what is written through a mapping may leave no stamp. */
const STAMPED_SYSTEMS: ReadonlySet<number> = new Set([0xef53, 0x58465342, 0x9123683e])

/** By device: whether each change leaves a stamp of its own. */
const tried = new Map<bigint, boolean>()

/**
 * Many systems take the time of a change from a clock that ticks every few milliseconds, and what is changed right after
 * a look then seems untouched. There, undefined: it must be read again.
 */
export function startStamping(root: Directory): Stamping | undefined {
  if (!root.throughDescriptor || !tellsEveryChange(root)) return undefined
  const stamps = new Map<string, Stamp>()
  const found: string[] = []
  let isTooMuch = false

  function note(path: string, fd: number) {
    if (stamps.size >= MOST) isTooMuch = true
    else stamps.set(path, brief(fstatSync(fd, { bigint: true })))
  }

  return {
    file: note,
    folder(path, directory) {
      note(path, directory.fd)
      // What comes later changes its stamp.
      for (const name of listNames(directory, MOST + 1))
        found.push(path === '' ? `${name}` : `${path}/${name}`)
    },
    stamps: () => (isTooMuch || found.some((path) => !stamps.has(path)) ? undefined : stamps),
  }
}

export function areUntouched(folder: string, stamps: Stamps): boolean {
  for (const [path, stamp] of stamps) {
    const now = lookAt(path === '' ? folder : `${folder}/${path}`)
    if (now?.ctimeNs !== stamp.ctimeNs || now.ino !== stamp.ino || now.dev !== stamp.dev) return false
  }
  return true
}

/** Changes in quick succession, of which a clock that ticks would give several one time. */
function tellsEveryChange({ fd, self, dev }: Directory): boolean {
  const known = tried.get(dev)
  if (known !== undefined) return known
  let before = fstatSync(fd, { bigint: true })
  let tells = STAMPED_SYSTEMS.has(statfsSync(self).type)
  for (let count = 0; count < TRIES && tells; count++) {
    fchmodSync(fd, Number(before.mode & 0o7777n))
    const after = fstatSync(fd, { bigint: true })
    tells = after.ctimeNs !== before.ctimeNs
    before = after
  }
  tried.set(dev, tells)
  return tells
}

/** Of a link it is that of the link itself. */
function lookAt(path: string): Stamp | undefined {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

function brief({ dev, ino, ctimeNs }: Stamp): Stamp {
  return { dev, ino, ctimeNs }
}
