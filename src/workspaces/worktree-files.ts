import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDirectory, openFolders } from './directory.ts'
import { showName } from './entry-name.ts'
import { type GitPlace, IGNORE_DIRTY, runGit } from './git.ts'
import { listNames } from './listing.ts'
import { refuse } from './problem.ts'

const MIB = 1024 * 1024
const LISTS = 16 * MIB
/** All files of a large repository. */
const INDEX = 256 * MIB
/** What settings could hide from an index of our own, or show in it falsely, and have git write besides it. */
const PLAIN_INDEX = ['core.ignoreStat=false', 'core.splitIndex=false', 'diff.autoRefreshIndex=true'].flatMap(
  (setting) => ['-c', setting],
)
const MOST_NAMED = 10

export interface WorktreeFiles {
  /** Changed or new, as git sees it. */
  readonly uncommitted: readonly string[]
  /** Changed, too, but git was told not to look. */
  readonly hidden: readonly string[]
  readonly ignored: readonly string[]
  /** Of what is in them git knows one commit by its name, and holds nothing. They are not looked into. */
  readonly inner: readonly string[]
}

export const NO_FILES: WorktreeFiles = { uncommitted: [], hidden: [], ignored: [], inner: [] }

/** What is in no commit; of what git ignores, only what the options ask for. */
export async function listFiles(own: GitPlace, options: readonly string[] = []): Promise<WorktreeFiles> {
  const plain = ['status', '--porcelain', '-z', '--untracked-files=all', '--no-renames', IGNORE_DIRTY]
  const lines = await ask(own, [...plain, ...options], 'what is in no commit')
  const named = (isIgnored: boolean) =>
    lines.filter((line) => line.startsWith('!!') === isIgnored).map((line) => line.slice(3))
  const uncommitted = named(false)
  const listing = ['ls-files', '-v', '--stage', '-z']
  const indexed = (await ask(own, listing, 'what is in it', { maxBytes: INDEX })).map(parseIndexed)
  const links = indexed.filter(({ entry }) => entry.startsWith('160000 '))
  const inner = links.filter(({ path }) => isFilled(own.workTree ?? '', path))
  const told = new Set(uncommitted)
  const flagged = indexed.filter(({ path, isHidden }) => isHidden && !told.has(path))
  return {
    uncommitted,
    hidden: await changedAmong(own, flagged),
    ignored: named(true),
    inner: inner.map(({ path }) => path),
  }
}

interface Indexed {
  readonly path: string
  /** As git takes it in again. */
  readonly entry: string
  /** By `git update-index --skip-worktree` or `--assume-unchanged`. */
  readonly isHidden: boolean
}

function parseIndexed(line: string): Indexed {
  const entry = line.slice(2)
  return { path: entry.slice(entry.indexOf('\t') + 1), entry, isHidden: /^[Sa-z]/.test(line) }
}

/** Asked with an index of our own, in which there are no flags. What is not there at all is no work that could be lost. */
async function changedAmong(own: GitPlace, files: readonly Indexed[]): Promise<string[]> {
  if (files.length === 0) return []
  const folder = mkdtempSync(join(tmpdir(), 'orchub-index-'))
  try {
    const variables = { ...own.variables, GIT_INDEX_FILE: join(folder, 'index') }
    const askPlain = (args: readonly string[], input = '') =>
      ask({ ...own, variables }, [...PLAIN_INDEX, ...args], 'about files that are hidden from it', { input })
    await askPlain(['update-index', '-z', '--index-info'], files.map(({ entry }) => `${entry}\0`).join(''))
    const diff = ['diff', '--name-only', '--diff-filter=d', '-z', '--no-ext-diff', '--no-textconv']
    const changed = await askPlain([...diff, IGNORE_DIRTY])
    // A name that is not UTF-8 does not come back as it was, and is not found.
    const unknown = files.map(({ path }) => path).filter((path) => path.includes('\ufffd'))
    return [...new Set([...changed, ...unknown])]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** What git lists with `-z`. */
async function ask(
  place: GitPlace,
  args: readonly string[],
  what: string,
  { input = '', maxBytes = LISTS } = {},
): Promise<string[]> {
  const ran = await runGit(place, args, maxBytes, input)
  if (!ran.ok) return refuse('unreadable', 'worktree', `cannot be asked ${what}: ${ran.err}`)
  return ran.out.split('\0').filter((line) => line !== '')
}

/** Links on the way are not followed: what is behind them is not in it. */
function isFilled(workTree: string, path: string): boolean {
  // The path of an open folder is a link as far as the disk is concerned.
  const root = openDirectory(`${workTree}/.`)
  try {
    const opened = openFolders(root, path.split('/'))
    if (!opened.ok) return false
    try {
      return listNames(opened.value, 1).length > 0
    } finally {
      opened.value.close()
    }
  } finally {
    root.close()
  }
}

/** For people, in one line. */
export function nameFiles(paths: readonly string[]): string {
  const more = paths.length - MOST_NAMED
  return paths.slice(0, MOST_NAMED).map(showName).join(', ') + (more > 0 ? ` and ${more} more` : '')
}
