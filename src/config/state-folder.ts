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

/** The folder that relative paths in the file start from. */
export function folderOf(file: string | undefined): string {
  return file === undefined ? resolve('.') : dirname(resolve(file))
}
