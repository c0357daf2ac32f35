import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const MOST_BYTES = 64 * 1024

/** Where the repository keeps what it knows of the worktree at this path. */
export function recordOf(gitDir: string, path: string): string | undefined {
  const folder = join(gitDir, 'worktrees')
  const names = existsSync(folder) ? readdirSync(folder) : []
  return names
    .map((name) => join(folder, name))
    .find((record) => textIn(join(record, 'gitdir')) === join(path, '.git'))
}

/** Git has made it and filled it. While it does, it holds a lock of its own on it, which a crash leaves behind. */
export function isWhole(record: string, path: string): boolean {
  return existsSync(join(path, '.git')) && textIn(join(record, 'locked')) !== 'initializing'
}

function textIn(file: string): string | undefined {
  const found = lstatSync(file, { throwIfNoEntry: false })
  // An agent can write there: a pipe would hold us up.
  return found?.isFile() && found.size < MOST_BYTES ? readFileSync(file, 'utf8').trim() : undefined
}
