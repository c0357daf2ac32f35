import { existsSync, readdirSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { removeFolder } from './folder.ts'
import { type GitPlace, runGit } from './git.ts'
import { failed, type Outcome, problem } from './problem.ts'
import type { FoundWorktree, Worktree } from './worktree-folder.ts'
import { forgetWorktree, isWhole, recordOf } from './worktree-record.ts'
import { countUnmerged } from './worktree-unmerged.ts'

export type { FoundWorktree, Worktree }

export const WORKTREE = 'worktree'

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
/** What the branches that are made for agents begin with. */
const OWN_BRANCHES = 'orc/'

/**
 * A worktree on a new branch in the agent's folder. The user's own branch and files are not touched. It can be asked for
 * again: what an earlier call has made is given once more, and what it left half made is made anew.
 */
export async function addWorktree(wanted: WorktreeWanted): Promise<Outcome<Worktree>> {
  const { repository, branch, from = 'HEAD' } = wanted
  const refuse = (why: string) => failed(problem('invalid', repository, why))
  const found = await findGitDir(repository)
  if (!found.ok) return found
  const gitDir = found.value
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
  if (made !== undefined) await forgetWorktree(gitDir, { ownDir: made, path })
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

/** Undefined: there is no repository. That git cannot tell is another thing. */
export async function findGitDir(folder: string): Promise<Outcome<string | undefined>> {
  // Here git may look for itself: the folder is the user's, and no agent has been in it yet.
  const found = await runGit({ workTree: folder }, ['rev-parse', '--git-common-dir'], SMALL)
  if (found.ok) return { ok: true, value: realpathSync(resolve(folder, found.out.trim())) }
  if (/not a git repository/.test(found.err)) return { ok: true, value: undefined }
  return failed(problem('invalid', folder, `is in a repository that git cannot use: ${found.err}`))
}

async function commitAt(place: GitPlace, revision: string): Promise<string | undefined> {
  const args = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${revision}^{commit}`]
  const found = await runGit(place, args, SMALL)
  return found.ok ? found.out.trim() : undefined
}

/**
 * Has the repository forget a worktree whose folder is gone. Its branch stays unless all of it is on another one; so commits
 * on it are never lost. What was not made for the agent stays with git, which prunes it: an agent can have written into the
 * record of another's that it lies here.
 */
export async function releaseWorktree(worktree: FoundWorktree): Promise<{ branchKept: boolean }> {
  const { gitDir, branch } = worktree
  const unmerged = branch === undefined ? undefined : await countUnmerged({ gitDir, branch })
  const isMadeForIt = isOwn(worktree)
  if (isMadeForIt) await forgetWorktree(gitDir, worktree)
  if (branch === undefined || unmerged !== 0) return { branchKept: unmerged !== undefined }
  // An agent can have gone to any branch of the user's, where it has nothing to lose and we have nothing to delete.
  if (!isMadeForIt || !branch.startsWith(OWN_BRANCHES)) return { branchKept: false }
  const deleted = await runGit({ gitDir }, ['branch', '--quiet', '-D', '--', branch], SMALL)
  return { branchKept: !deleted.ok }
}

/** By its place, or by its branch. */
function isOwn({ path, within = dirname(path), branch = '' }: FoundWorktree): boolean {
  const isNamed = branch.startsWith(OWN_BRANCHES) && branch.endsWith(`/${basename(within)}`)
  return path === join(within, WORKTREE) || isNamed
}
