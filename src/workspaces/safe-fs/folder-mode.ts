import { chmodSync, closeSync, constants, fstatSync, lstatSync, openSync } from 'node:fs'

/** Linux: an open file that is only a place, for which no permission on it is needed. Node has no name for it. */
const O_PATH = 0o10000000
/** To read it, to change it and to go through it. */
const OWNER = 0o700

/** Changes the mode of a folder, never of what a link leads to, and gives the one before. */
export function changeMode(path: string | Buffer, change: (mode: number) => number): number {
  if (process.platform !== 'linux') {
    const before = lstatSync(path).mode & 0o7777
    chmodSync(path, change(before))
    return before
  }
  const fd = openSync(path, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  try {
    const before = fstatSync(fd).mode & 0o7777
    chmodSync(`/proc/self/fd/${fd}`, change(before))
    return before
  } finally {
    closeSync(fd)
  }
}

/**
 * Gives the owner of a folder their rights again, which an agent took away, or its `cp -a` of a read-only inbox: without them
 * nothing can be put into it, and it cannot be moved elsewhere. Whatever is no folder is left as it is.
 */
export function allowOwner(path: string | Buffer): void {
  const seen = lstatSync(path, { throwIfNoEntry: false })
  if (!seen?.isDirectory() || (seen.mode & OWNER) === OWNER) return
  changeMode(path, (mode) => mode | OWNER)
}
