import { type GitPlace, runGit } from './git.ts'
import { failed, type Outcome, type Problem, problem } from './problem.ts'
import { type CommitName, listCommits, readJourney } from './worktree-commits.ts'
import { listFiles, NO_FILES } from './worktree-files.ts'
import { type FoundWorktree, inWorktree, nameOf, ownPlace } from './worktree-folder.ts'

/** Work that nothing but the worktree holds, or that is on no other branch yet. */
export interface UnmergedWork {
  /** Undefined: its HEAD is detached. */
  readonly branch: string | undefined
  /** On the branch and on no other; they stay on it when the worktree goes. */
  readonly commits: number
  /** On no branch at all: gone with the worktree. */
  readonly looseCommits: readonly CommitName[]
  /** Changed or new files that are in no commit: gone with the worktree. */
  readonly uncommitted: readonly string[]
  /** Files, and folders as one, that git was told to ignore: in no commit either, but most can be made again. */
  readonly ignored: readonly string[]
  /** Why the files in it could not be looked at. */
  readonly unseen?: Problem
}

const SMALL = 1024 * 1024

const EVERYWHERE = ['--branches', '--tags', '--remotes']

export async function findUnmerged(worktree: FoundWorktree): Promise<Outcome<UnmergedWork>> {
  const { branch } = worktree
  const place = ownPlace(worktree)
  const commits = branch === undefined ? 0 : await countUnmerged({ gitDir: worktree.gitDir, branch })
  const atHead = await count(place, 'HEAD', ['--not', ...EVERYWHERE])
  const journey = await readJourney(worktree)
  const tips = [...(atHead === undefined ? [] : ['HEAD']), ...(journey?.left ?? [])]
  const loose = await listCommits(place, tips, ['--not', ...EVERYWHERE])
  if (commits === 'unreadable' || atHead === 'unreadable' || loose === undefined || journey === undefined) {
    const what = `cannot be asked what of ${branch ?? 'it'} is on no other branch`
    return failed(problem('unreadable', nameOf(worktree), what))
  }
  const files = await inWorktree(worktree, (own) => listFiles(own, ['--ignored=matching']))
  const { inner, hidden, ignored, ...seen } = files.ok ? files.value : NO_FILES
  const uncommitted = [
    ...seen.uncommitted,
    ...hidden.map((path) => `${path} (hidden from git by a flag)`),
    ...inner.map((path) => `${path}/ (a repository of its own)`),
  ]
  const unseen = files.ok ? {} : { unseen: files.problems[0]! }
  const value = { branch, commits: commits ?? 0, looseCommits: loose, uncommitted, ignored, ...unseen }
  return { ok: true, value }
}

/** Unreadable: git cannot tell, which is not to say that there is nothing. Undefined: the agent has deleted it. */
type Count = number | undefined | 'unreadable'

/** Commits of the branch that are on no other. */
export function countUnmerged({ gitDir, branch }: { gitDir: string; branch: string }): Promise<Count> {
  return count({ gitDir }, `refs/heads/${branch}`, ['--not', `--exclude=${branch}`, ...EVERYWHERE])
}

async function count(place: GitPlace, tip: string, others: readonly string[]): Promise<Count> {
  const counted = await runGit(place, ['rev-list', '--count', tip, ...others], SMALL)
  if (counted.ok) return Number(counted.out.trim())
  const there = await runGit(place, ['rev-parse', '--verify', '--quiet', tip], SMALL)
  // Git says nothing but 1 of what is not there, and more of what it cannot read.
  return !there.ok && there.code === 1 && there.err === '' ? undefined : 'unreadable'
}
