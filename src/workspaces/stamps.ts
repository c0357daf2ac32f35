import { fchmodSync, fstatSync, lstatSync } from 'node:fs'
import type { Directory } from './directory.ts'

interface Stamp {
  readonly dev: bigint
  readonly ino: bigint
  readonly ctimeNs: bigint
}

/** Of a folder and all in it. The same again later: nobody has touched any of it. */
export interface Stamps {
  readonly folder: Stamp
  /** By paths below it. */
  readonly inside: ReadonlyMap<string, Stamp>
}

/** More are not worth keeping. */
const MOST = 1000
const TRIES = 8

/** By device: whether each change gets a stamp of its own. */
const tried = new Map<bigint, boolean>()

/**
 * The time of the last change cannot be set by anybody, but many systems take it from a clock that ticks every few
 * milliseconds, and what is changed right after a look then seems untouched. There, undefined: it must be read again.
 * To be taken once nothing will be done to the folder any more.
 */
export function takeStamps(folder: Directory, paths: Iterable<string>): Stamps | undefined {
  if (!folder.throughDescriptor || !tellsEveryChange(folder)) return undefined
  const inside = new Map<string, Stamp>()
  for (const path of paths) {
    const stamp = inside.size < MOST ? stampOf(`${folder.self}/${path}`) : undefined
    if (stamp === undefined) return undefined
    inside.set(path, stamp)
  }
  return { folder: brief(fstatSync(folder.fd, { bigint: true })), inside }
}

export function areUntouched(folder: string, stamps: Stamps): boolean {
  if (!isSame(stampOf(folder), stamps.folder)) return false
  for (const [path, stamp] of stamps.inside) {
    if (!isSame(stampOf(`${folder}/${path}`), stamp)) return false
  }
  return true
}

/** Changes in quick succession, of which a clock that ticks would give several one time. */
function tellsEveryChange({ fd }: Directory): boolean {
  let before = fstatSync(fd, { bigint: true })
  const known = tried.get(before.dev)
  if (known !== undefined) return known
  const mode = Number(before.mode & 0o777n)
  let tells = true
  for (let count = 0; count < TRIES && tells; count++) {
    fchmodSync(fd, mode)
    const after = fstatSync(fd, { bigint: true })
    tells = after.ctimeNs !== before.ctimeNs
    before = after
  }
  tried.set(before.dev, tells)
  return tells
}

/** Of a link it is that of the link itself. */
function stampOf(path: string): Stamp | undefined {
  try {
    const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false })
    return stat === undefined ? undefined : brief(stat)
  } catch {
    return undefined
  }
}

function isSame(one: Stamp | undefined, other: Stamp): boolean {
  return one?.ctimeNs === other.ctimeNs && one.ino === other.ino && one.dev === other.dev
}

function brief({ dev, ino, ctimeNs }: Stamp): Stamp {
  return { dev, ino, ctimeNs }
}
