import { dirname, join, resolve } from 'node:path'

export type Env = Readonly<Record<string, string | undefined>>

/** `.orc` beside the file, or wherever ORC_HOME points. Alone here, so that a short command can do without schemas. */
export function stateFolder(file: string | undefined, env: Env): string {
  const home = env.ORC_HOME
  return home === undefined || home === '' ? join(folderOf(file), '.orc') : resolve(home)
}

/** The folder that relative paths in the file start from. */
export function folderOf(file: string | undefined): string {
  return file === undefined ? resolve('.') : dirname(resolve(file))
}
