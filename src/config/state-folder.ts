import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

export type Env = Readonly<Record<string, string | undefined>>

const STATE = '.orc'

/** `.orc` beside the file, or wherever ORC_HOME points. Alone here, so that a short command can do without schemas. */
export function stateFolder(file: string | undefined, env: Env): string {
  const home = env.ORC_HOME
  if (home !== undefined && home !== '') return resolve(home)
  const folder = folderOf(file)
  // What `orc run` made for a plan without a team lies there itself.
  return basename(folder) === STATE ? folder : join(folder, STATE)
}

/** Makes it where it is not there yet, for its owner alone and unseen by git: the operator's token is in it. */
export function makeStateFolder(folder: string): void {
  const isNew = make(folder)
  // A folder of another name that was there before may hold more than ours.
  if (!isNew && basename(folder) !== STATE) return
  try {
    writeFileSync(join(folder, '.gitignore'), '*\n', { flag: 'wx' })
  } catch (error) {
    // Where it cannot be written, the store says so in better words.
    if (!/^(EEXIST|EACCES|EPERM|EROFS|ENOSPC)$/.test((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}

/** One by one: with `recursive`, a file system that is read-only is told as a folder that is not there. */
function make(folder: string): boolean {
  if (isFolder(folder)) return false
  const above = dirname(folder)
  if (above !== folder) make(above)
  try {
    mkdirSync(folder, { mode: 0o700 })
    return true
  } catch (error) {
    // Another program was faster.
    if (isFolder(folder)) return false
    throw error
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}

/** The folder that relative paths in the file start from. */
export function folderOf(file: string | undefined): string {
  return file === undefined ? resolve('.') : dirname(resolve(file))
}
