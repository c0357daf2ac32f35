import { existsSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { runGit } from './git.ts'
import { failed, type Outcome, problem } from './problem.ts'
import { findGitDir, WORKTREE, type Worktree } from './worktree.ts'
import { recordOf } from './worktree-record.ts'

const SMALL = 64 * 1024

/**
 * The worktree of a workspace, for someone who did not make it. It is looked up in the repository around the workspace,
 * which is the user's: what the worktree says of itself could be the agent's word. Undefined: there is none.
 */
export async function findWorktree(workspace: string): Promise<Outcome<Worktree | undefined>> {
  const path = join(realpathSync(workspace), WORKTREE)
  if (!existsSync(path)) return { ok: true, value: undefined }
  const gitDir = await findGitDir(dirname(realpathSync(workspace)))
  const ownDir = gitDir === undefined ? undefined : recordOf(gitDir, path)
  if (gitDir === undefined || ownDir === undefined) {
    return failed(problem('invalid', path, 'is a worktree that no repository around it knows of'))
  }
  const head = await runGit({ gitDir: ownDir }, ['symbolic-ref', '--quiet', '--short', 'HEAD'], SMALL)
  const commit = await runGit({ gitDir: ownDir }, ['rev-parse', '--verify', 'HEAD'], SMALL)
  if (!head.ok || !commit.ok) {
    return failed(problem('invalid', path, 'is on no branch: what is in it could be lost'))
  }
  return { ok: true, value: { gitDir, ownDir, path, branch: head.out.trim(), base: commit.out.trim() } }
}
