import { lstatSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { runGit } from './git.ts'
import { type Problem, problem } from './problem.ts'
import { type FoundWorktree, findGitDir, WORKTREE } from './worktree.ts'
import { ownPlace } from './worktree-folder.ts'
import { recordsBelow } from './worktree-record.ts'

const SMALL = 64 * 1024

export interface FoundWorktrees {
  readonly worktrees: readonly FoundWorktree[]
  /** Why there may be others that were not found. */
  readonly unseen: readonly Problem[]
}

/**
 * The worktrees in a workspace, for someone who did not make them. They are looked up in the repository around the workspace,
 * which is the user's: what a worktree says of itself could be the agent's word. One that the agent deleted is found as
 * well: its commits can be there still.
 */
export async function findWorktrees(workspace: string): Promise<FoundWorktrees> {
  const folder = realpathSync(workspace)
  const given = join(folder, WORKTREE)
  const isThere = lstatSync(given, { throwIfNoEntry: false }) !== undefined
  const around = await findGitDir(dirname(folder)).catch((error: unknown) => {
    // Without git there was never a worktree, and nothing to ask it.
    if (isThere) throw error
    return { ok: true as const, value: undefined }
  })
  if (!around.ok) return { worktrees: [], unseen: around.problems }
  const gitDir = around.value
  const records = gitDir === undefined ? NONE : recordsBelow(gitDir, folder)
  if (!records.ok) return { worktrees: [], unseen: records.problems }
  const worktrees: FoundWorktree[] = []
  for (const record of records.value)
    worktrees.push(await lookUp({ gitDir: gitDir!, within: folder, ...record }))
  const isKnown = !isThere || worktrees.some(({ path }) => path === given)
  return {
    worktrees,
    unseen: isKnown ? [] : [problem('invalid', WORKTREE, 'is known to no repository around it')],
  }
}

const NONE = { ok: true as const, value: [] }

async function lookUp(place: Omit<FoundWorktree, 'branch' | 'base'>): Promise<FoundWorktree> {
  const own = ownPlace(place)
  const head = await runGit(own, ['symbolic-ref', '--quiet', 'HEAD'], SMALL)
  const commit = await runGit(own, ['rev-parse', '--verify', '--quiet', 'HEAD'], SMALL)
  const branch = head.ok ? head.out.trim().replace(/^refs\/heads\//, '') : undefined
  return { ...place, branch, base: commit.ok ? commit.out.trim() : '' }
}
