import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

export type Env = Readonly<Record<string, string | undefined>>

const STATE = '.orc'

/** `.orc` beside the file, or ORC_HOME. A separate file, because fast commands must not load the schemas. */
export function stateFolder(file: string | undefined, env: Env): string {
  const home = env.ORC_HOME
  if (home !== undefined && home !== '') return resolve(home)
  const folder = folderOf(file)
  // `orc run` of a plan without a team writes its orc.yaml into the state folder itself.
  return basename(folder) === STATE ? folder : join(folder, STATE)
}

/** Creates the folder for its owner only and hides it from git, because it holds the operator's token. */
export function makeStateFolder(folder: string): void {
  const isNew = make(folder)
  // An existing folder with another name may hold other people's files.
  if (!isNew && basename(folder) !== STATE) return
  try {
    writeFileSync(join(folder, '.gitignore'), '*\n', { flag: 'wx' })
  } catch (error) {
    // The store reports a folder that cannot be written with a better message.
    if (!/^(EEXIST|EACCES|EPERM|EROFS|ENOSPC)$/.test((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}

/** Creates each level on its own: with `recursive`, a read-only file system is reported as ENOENT. */
function make(folder: string): boolean {
  if (isFolder(folder)) return false
  const above = dirname(folder)
  if (above !== folder) make(above)
  try {
    mkdirSync(folder, { mode: 0o700 })
    return true
  } catch (error) {
    // Another process has just created it.
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
