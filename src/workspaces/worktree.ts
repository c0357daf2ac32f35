import { existsSync, readdirSync, realpathSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { removeFolder } from './folder.ts'
import { type GitPlace, IGNORE_DIRTY, runGit } from './git.ts'
import { failed, type Outcome, problem } from './problem.ts'
import { isWhole, recordOf } from './worktree-record.ts'

export const WORKTREE = 'worktree'

/** An agent's worktree: kept by the orchestrator, as the worktree's own pointer could be changed. */
export interface Worktree {
  /** The repository's own folder, `.git`. */
  readonly gitDir: string
  /** Where git keeps this worktree, inside it. */
  readonly ownDir: string
  readonly path: string
  readonly branch: string
  /** The commit that it began from. */
  readonly base: string
}

export interface WorktreeWanted {
  readonly workspace: string
  /** Any folder of the user's repository. */
  readonly repository: string
  readonly branch: string
  /** A branch or commit; HEAD when not given. */
  readonly from?: string
  /** By which whoever comes after a crash finds the git that still fills it, and ends it. */
  readonly variables?: Readonly<Record<string, string>>
}

const SMALL = 1024 * 1024

/**
 * A worktree on a new branch in the agent's folder. The user's own branch and files are not touched. It can be asked for
 * again: what an earlier call has made is given once more, and what it left half made is made anew.
 */
export async function addWorktree(wanted: WorktreeWanted): Promise<Outcome<Worktree>> {
  const { repository, branch, from = 'HEAD' } = wanted
  const refuse = (why: string) => failed(problem('invalid', repository, why))
  const gitDir = await findGitDir(repository)
  if (gitDir === undefined) return refuse('is not in a git repository')
  const place = { gitDir }
  const named = await runGit(place, ['check-ref-format', '--branch', branch], SMALL)
  if (!named.ok || branch.startsWith('-')) return refuse(`cannot have a branch called ${branch}`)
  const base = await commitAt(place, from)
  if (base === undefined) return refuse(`has no commit ${from}`)
  const path = join(realpathSync(wanted.workspace), WORKTREE)
  const made = recordOf(gitDir, path)
  if (made !== undefined && isWhole(made, path)) {
    const head = await runGit({ gitDir: made }, ['symbolic-ref', '--quiet', 'HEAD'], SMALL)
    if (!head.ok || head.out.trim() !== `refs/heads/${branch}`) {
      return refuse(`has a worktree at ${path} already, which is not on ${branch}`)
    }
    const begun = await beginningOf(place, branch, base)
    return { ok: true, value: { gitDir, ownDir: made, path, branch, base: begun } }
  }
  if (made !== undefined || isHollow(path)) await removeFolder(path)
  if (made !== undefined) await forgetWorktree(gitDir, path)
  // A branch on which nothing was done is one that an earlier call made, before it could fill the worktree.
  const isLeft = (await countUnmerged({ gitDir, branch })) === 0
  const what = isLeft ? [path, branch] : ['-b', branch, path, base]
  const { variables = {} } = wanted
  const added = await runGit({ ...place, variables }, ['worktree', 'add', '--quiet', ...what], SMALL)
  if (!added.ok) return refuse(`gave no worktree: ${added.err}`)
  const own = await runGit(
    { gitDir: join(path, '.git'), workTree: path },
    ['rev-parse', '--absolute-git-dir'],
    SMALL,
  )
  if (!own.ok) return refuse(`gave no worktree: ${own.err}`)
  const begun = isLeft ? await beginningOf(place, branch, base) : base
  return { ok: true, value: { gitDir, ownDir: own.out.trim(), path, branch, base: begun } }
}

/** Git makes the folder and its pointer first: without more in it, nobody's work is in it. */
function isHollow(path: string): boolean {
  return existsSync(path) && readdirSync(path).every((name) => name === '.git')
}

async function beginningOf(place: GitPlace, branch: string, from: string): Promise<string> {
  const found = await runGit(place, ['merge-base', `refs/heads/${branch}`, from], SMALL)
  return found.ok ? found.out.trim() : from
}

/** Twice: even if it was locked. The folder is gone, so that only git's own record of it is left. */
async function forgetWorktree(gitDir: string, path: string): Promise<void> {
  await runGit({ gitDir }, ['worktree', 'remove', '--force', '--force', path], SMALL)
}

export async function findGitDir(folder: string): Promise<string | undefined> {
  // Here git may look for itself: the folder is the user's, and no agent has been in it yet.
  const found = await runGit({ workTree: folder }, ['rev-parse', '--git-common-dir'], SMALL)
  return found.ok ? realpathSync(resolve(folder, found.out.trim())) : undefined
}

async function commitAt(place: GitPlace, revision: string): Promise<string | undefined> {
  const args = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${revision}^{commit}`]
  const found = await runGit(place, args, SMALL)
  return found.ok ? found.out.trim() : undefined
}

/** Work that nothing but the worktree holds, or that is on no other branch yet. */
export interface UnmergedWork {
  readonly branch: string
  /** On the branch and on no other; they stay on it when the worktree goes. */
  readonly commits: number
  /** On no branch at all: gone with the worktree. */
  readonly looseCommits: number
  /** Changed or new files that are in no commit: gone with the worktree. */
  readonly uncommitted: readonly string[]
}

export async function findUnmerged(worktree: Worktree): Promise<Outcome<UnmergedWork>> {
  const { branch, path } = worktree
  const own = { gitDir: worktree.ownDir, workTree: path }
  const commits = await countUnmerged(worktree)
  const everywhere = ['--not', '--branches', '--tags', '--remotes']
  const loose = await count({ gitDir: worktree.ownDir }, 'HEAD', everywhere)
  if (commits === 'unreadable' || loose === 'unreadable') {
    return failed(problem('unreadable', path, `cannot be asked what of ${branch} is on no other branch`))
  }
  const status = await runGit(
    own,
    ['status', '--porcelain', '-z', '--untracked-files=all', '--no-renames', IGNORE_DIRTY],
    16 * SMALL,
  )
  if (!status.ok)
    return failed(problem('unreadable', path, `cannot be asked what is in no commit: ${status.err}`))
  const uncommitted = status.out
    .split('\0')
    .filter((line) => line !== '')
    .map((line) => line.slice(3))
  return { ok: true, value: { branch, commits: commits ?? 0, looseCommits: loose ?? 0, uncommitted } }
}

/** Unreadable: git cannot tell, which is not to say that there is nothing. Undefined: the agent has deleted it. */
type Count = number | undefined | 'unreadable'

/** Commits of the branch that are on no other. */
function countUnmerged({ gitDir, branch }: Pick<Worktree, 'gitDir' | 'branch'>): Promise<Count> {
  const others = ['--not', `--exclude=${branch}`, '--branches', '--tags', '--remotes']
  return count({ gitDir }, `refs/heads/${branch}`, others)
}

async function count(place: GitPlace, tip: string, others: readonly string[]): Promise<Count> {
  const counted = await runGit(place, ['rev-list', '--count', tip, ...others], SMALL)
  if (counted.ok) return Number(counted.out.trim())
  const there = await runGit(place, ['rev-parse', '--verify', '--quiet', tip], SMALL)
  // Git says nothing but 1 of what is not there, and more of what it cannot read.
  return !there.ok && there.code === 1 && there.err === '' ? undefined : 'unreadable'
}

/** Takes the worktree away. Its branch stays unless all of it is on another one; so commits on it are never lost. */
export async function removeWorktree(worktree: Worktree): Promise<{ branchKept: boolean }> {
  const place = { gitDir: worktree.gitDir }
  const { branch } = worktree
  const unmerged = await countUnmerged(worktree)
  await removeFolder(worktree.path)
  await forgetWorktree(worktree.gitDir, worktree.path)
  if (unmerged !== 0) return { branchKept: unmerged !== undefined }
  const deleted = await runGit(place, ['branch', '--quiet', '-D', '--', branch], SMALL)
  return { branchKept: !deleted.ok }
}
