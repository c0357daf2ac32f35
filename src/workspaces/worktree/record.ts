import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { failed, type Outcome, problem } from '../problem.ts'
import { openDirectory, openFolder } from '../safe-fs/directory.ts'
import { startPace } from '../safe-fs/pace.ts'
import { removeTree } from '../safe-fs/removal.ts'
import { readSmall } from '../safe-fs/small-file.ts'

const MOST_BYTES = 64 * 1024
const RECORDS = 'worktrees'
const POINTER = 'gitdir'

export interface WorktreeRecord {
  /** Folder of the repository's record of the worktree. */
  readonly ownDir: string
  readonly path: string
}

/** Finds the repository's record of the worktree at this path. */
export function recordOf(gitDir: string, path: string): string | undefined {
  return recordsIn(gitDir).find((ownDir) => pathIn(ownDir) === path)
}

/** Finds the records of all worktrees in a folder, or at it: an agent can move its own, and add others. */
export function recordsBelow(gitDir: string, folder: string): Outcome<WorktreeRecord[]> {
  const records = join(gitDir, RECORDS)
  const found = lstatSync(records, { throwIfNoEntry: false })
  if (found !== undefined && !found.isDirectory()) {
    return failed(problem('not_a_folder', records, 'is no folder of git any more'))
  }
  const value = recordsIn(gitDir).flatMap((ownDir) => {
    const path = pathIn(ownDir)
    return path === folder || path?.startsWith(`${folder}/`) ? [{ ownDir, path }] : []
  })
  return { ok: true, value }
}

/**
 * Removes what the repository knows of a worktree, if that is still the one at this path. Git would look at the records of all
 * others for it, in which an agent can have put anything; and whoever put a link on the way leads nobody elsewhere.
 */
export async function forgetWorktree(gitDir: string, { ownDir, path }: WorktreeRecord): Promise<void> {
  const repository = openDirectory(gitDir)
  const records = openFolder(repository, RECORDS)
  repository.close()
  if (!records.ok) return
  const name = basename(ownDir)
  const record = openFolder(records.value, name)
  try {
    if (!record.ok) return
    const read = readSmall(record.value, POINTER, MOST_BYTES)
    // A record without a readable pointer cannot belong to another worktree.
    if (read.ok && pathOf(ownDir, read.value.toString()) !== path) return
    await removeTree(records.value, name, startPace())
  } finally {
    if (record.ok) record.value.close()
    records.value.close()
  }
}

/** Git has made it and filled it. While it does, it holds a lock of its own on it, which a crash leaves behind. */
export function isWhole(record: string, path: string): boolean {
  return existsSync(join(path, '.git')) && textIn(join(record, 'locked')) !== 'initializing'
}

/** Folders only: an agent can write there, and a link could lead anywhere. */
function recordsIn(gitDir: string): string[] {
  const folder = join(gitDir, RECORDS)
  if (!lstatSync(folder, { throwIfNoEntry: false })?.isDirectory()) return []
  const entries = readdirSync(folder, { withFileTypes: true })
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(folder, name))
}

/** Newer versions of git can be told to write it relative to the record. */
function pathIn(ownDir: string): string | undefined {
  const text = textIn(join(ownDir, POINTER))
  return text === undefined ? undefined : pathOf(ownDir, text)
}

function pathOf(ownDir: string, text: string): string | undefined {
  const pointer = resolve(ownDir, text.trim())
  return basename(pointer) === '.git' ? dirname(pointer) : undefined
}

function textIn(file: string): string | undefined {
  const found = lstatSync(file, { throwIfNoEntry: false })
  // A pipe would hold us up.
  return found?.isFile() && found.size < MOST_BYTES ? readFileSync(file, 'utf8').trim() : undefined
}
