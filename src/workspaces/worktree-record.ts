import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

const MOST_BYTES = 64 * 1024

export interface WorktreeRecord {
  /** Where the repository keeps what it knows of the worktree. */
  readonly ownDir: string
  readonly path: string
}

/** Where the repository keeps what it knows of the worktree at this path. */
export function recordOf(gitDir: string, path: string): string | undefined {
  return recordsIn(gitDir).find((ownDir) => pathIn(ownDir) === path)
}

/** Of all worktrees below a folder: an agent can move its own, and add others. */
export function recordsBelow(gitDir: string, folder: string): WorktreeRecord[] {
  return recordsIn(gitDir).flatMap((ownDir) => {
    const path = pathIn(ownDir)
    return path?.startsWith(`${folder}/`) ? [{ ownDir, path }] : []
  })
}

/** Git has made it and filled it. While it does, it holds a lock of its own on it, which a crash leaves behind. */
export function isWhole(record: string, path: string): boolean {
  return existsSync(join(path, '.git')) && textIn(join(record, 'locked')) !== 'initializing'
}

/** Folders only: an agent can write there, and a link could lead anywhere. */
function recordsIn(gitDir: string): string[] {
  const folder = join(gitDir, 'worktrees')
  if (!lstatSync(folder, { throwIfNoEntry: false })?.isDirectory()) return []
  const entries = readdirSync(folder, { withFileTypes: true })
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(folder, name))
}

/** Newer versions of git can be told to write it relative to the record. */
function pathIn(ownDir: string): string | undefined {
  const text = textIn(join(ownDir, 'gitdir'))
  if (text === undefined) return undefined
  const pointer = resolve(ownDir, text)
  return basename(pointer) === '.git' ? dirname(pointer) : undefined
}

function textIn(file: string): string | undefined {
  const found = lstatSync(file, { throwIfNoEntry: false })
  // A pipe would hold us up.
  return found?.isFile() && found.size < MOST_BYTES ? readFileSync(file, 'utf8').trim() : undefined
}
