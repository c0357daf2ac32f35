import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { failed, problem, refuse, type WorkspaceProblem, type WorkspaceResult } from '../problem.ts'
import { listNames, openDirectory, openFolders, showName } from '../safe-fs/directory.ts'
import {
  type FoundWorktree,
  type GitLocation,
  gitLocationOf,
  IGNORE_DIRTY,
  inWorktree,
  runGit,
  WORKTREE,
} from './git.ts'

export interface CommitName {
  readonly hash: string
  readonly subject: string
}

/** Work that exists only in the worktree, or on no other branch yet. */
export interface UnmergedWork {
  readonly worktree: typeof WORKTREE
  /** Undefined: its HEAD is detached. */
  readonly branch: string | undefined
  /** On the branch and on no other; they stay on it when the worktree is removed. */
  readonly commits: number
  /** HEAD's commits that are on no branch: lost with the worktree. */
  readonly looseCommits: readonly CommitName[]
  /** Changed or new files that are in no commit: lost with the worktree. */
  readonly uncommitted: readonly string[]
  /** Files and whole folders that git ignores: in no commit either, but most of them can be generated again. */
  readonly ignored: readonly string[]
  /** Why the files in it could not be checked. */
  readonly unseen?: WorkspaceProblem
}

const MIB = 1024 * 1024
const LISTS = 16 * MIB
/** Room for the index of a large repository. */
const INDEX = 256 * MIB
const MAX_FILES_NAMED = 10
const MAX_COMMITS_NAMED = 5

const EVERYWHERE = ['--branches', '--tags', '--remotes']

export async function findUnmerged(worktree: FoundWorktree): Promise<WorkspaceResult<UnmergedWork>> {
  const { branch, gitDir } = worktree
  const location = gitLocationOf(worktree)
  const commits = branch === undefined ? 0 : await countUnmerged({ gitDir, branch })
  const hasHead = await exists(location, 'HEAD')
  const loose = hasHead === true ? await listCommits(location, ['HEAD'], ['--not', ...EVERYWHERE]) : []
  if (commits === 'unreadable' || hasHead === 'unreadable' || loose === undefined) {
    const what = `cannot be checked: git cannot list the commits that are only on ${branch ?? 'its HEAD'}`
    return failed(problem('unreadable', WORKTREE, what))
  }
  const files = await inWorktree(worktree, async (own) => ({
    ...(await listFiles(own, ['--ignored=matching'])),
    opaque: await listOpaque(own),
  }))
  const { uncommitted, ignored, opaque } = files.ok ? files.value : NO_FILES
  const value: UnmergedWork = {
    worktree: WORKTREE,
    ...{ branch, commits: commits ?? 0, looseCommits: loose },
    ...{ uncommitted: [...uncommitted, ...opaque], ignored },
    ...(files.ok ? {} : { unseen: files.error[0]! }),
  }
  return { ok: true, value }
}

const NO_FILES = { uncommitted: [], ignored: [], opaque: [] }

/** Unreadable: git cannot tell, so there may be some. Undefined: the branch is deleted. */
type CommitCount = number | undefined | 'unreadable'

/** Commits of the branch that are on no other. */
export async function countUnmerged({
  gitDir,
  branch,
}: {
  gitDir: string
  branch: string
}): Promise<CommitCount> {
  const tip = `refs/heads/${branch}`
  const args = ['rev-list', '--count', tip, '--not', `--exclude=${branch}`, ...EVERYWHERE]
  const counted = await runGit({ gitDir }, args, LISTS)
  if (counted.ok) return Number(counted.value.trim())
  return (await exists({ gitDir }, tip)) === false ? undefined : 'unreadable'
}

async function exists(location: GitLocation, revision: string): Promise<boolean | 'unreadable'> {
  const found = await runGit(location, ['rev-parse', '--verify', '--quiet', revision], LISTS)
  if (found.ok) return true
  // Git exits with 1 and prints nothing if it is not there, and prints why if it cannot read it.
  return found.error.code === 1 && found.error.message === '' ? false : 'unreadable'
}

/** The commits that the revisions lead to. Revisions that do not exist are ignored. Undefined: git cannot tell. */
export async function listCommits(
  location: GitLocation,
  revisions: readonly string[],
  options: readonly string[] = [],
): Promise<CommitName[] | undefined> {
  const args = ['log', '--ignore-missing', '-z', '--format=%H%x1f%s', ...revisions, ...options, '--']
  const ran = await runGit(location, args, LISTS)
  if (!ran.ok) return undefined
  const records = ran.value.split('\0').filter((record) => record !== '')
  return records.map((record) => {
    const [hash = '', subject = ''] = record.split('\x1f')
    return { hash, subject }
  })
}

/** Files that are in no commit; of those that git ignores, only what the options ask for. */
export async function listFiles(own: GitLocation, options: readonly string[] = []) {
  const plain = ['status', '--porcelain', '-z', '--untracked-files=all', '--no-renames', IGNORE_DIRTY]
  const lines = await ask(own, [...plain, ...options], LISTS)
  const isIgnored = (line: string) => line.startsWith('!!')
  return {
    uncommitted: lines.filter((line) => !isIgnored(line)).map((line) => line.slice(3)),
    ignored: lines.filter(isIgnored).map((line) => line.slice(3)),
  }
}

/** Entries whose changes `git status` does not show: submodules that hold files, and files with a flag that hides changes. */
async function listOpaque(own: GitLocation): Promise<string[]> {
  const found: string[] = []
  for (const line of await ask(own, ['ls-files', '-v', '--stage', '-z'], INDEX)) {
    const path = line.slice(line.indexOf('\t') + 1)
    if (line.slice(2).startsWith('160000 ')) {
      if (holdsFiles(own.workTree!, path)) found.push(`${path}/ (a repository of its own)`)
    } else if (/^[Sa-z]/.test(line) && existsSync(join(own.workTree!, path)))
      found.push(`${path} (hidden from git by a flag)`)
  }
  return found
}

async function ask(location: GitLocation, args: readonly string[], maxBytes: number): Promise<string[]> {
  const ran = await runGit(location, args, maxBytes)
  if (!ran.ok) return refuse('unreadable', WORKTREE, `cannot be listed by git: ${ran.error.message}`)
  return ran.value.split('\0').filter((line) => line !== '')
}

/** Does not follow links along the path. */
function holdsFiles(workTree: string, path: string): boolean {
  // For the file system, the path of an open folder is a link; `/.` resolves it.
  using root = openDirectory(`${workTree}/.`)
  const opened = openFolders(root, path.split('/'))
  if (!opened.ok) return false
  try {
    return listNames(opened.value, 1).length > 0
  } finally {
    opened.value.close()
  }
}

/** Lists file names in one line. */
export function nameFiles(paths: readonly string[]): string {
  const more = paths.length - MAX_FILES_NAMED
  return paths.slice(0, MAX_FILES_NAMED).map(showName).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

/** Lists commits in one line. */
export function nameCommits(commits: readonly CommitName[]): string {
  const shown = commits
    .slice(0, MAX_COMMITS_NAMED)
    .map(({ hash, subject }) => `${hash.slice(0, 12)} ${showName(subject)}`.trimEnd())
  const more = commits.length - shown.length
  return shown.join(', ') + (more > 0 ? ` and ${more} more` : '')
}
