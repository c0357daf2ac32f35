import { chmodSync, closeSync, constants, fstatSync, lstatSync, openSync } from 'node:fs'

/** Linux: an open file that is only a place, for which no permission on it is needed. Node has no name for it. */
const O_PATH = 0o10000000

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
