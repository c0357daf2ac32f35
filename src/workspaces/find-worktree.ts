import { lstatSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { runGit } from './git.ts'
import { failed, type Outcome, problem } from './problem.ts'
import { type FoundWorktree, findGitDir, WORKTREE } from './worktree.ts'
import { ownPlace } from './worktree-folder.ts'
import { recordOf } from './worktree-record.ts'

const SMALL = 64 * 1024

/**
 * The worktree of a workspace, for someone who did not make it. It is looked up in the repository around the workspace,
 * which is the user's: what the worktree says of itself could be the agent's word. One that the agent deleted is found as
 * well: its commits can be there still. Undefined: there is none.
 */
export async function findWorktree(workspace: string): Promise<Outcome<FoundWorktree | undefined>> {
  const folder = realpathSync(workspace)
  const path = join(folder, WORKTREE)
  const isThere = lstatSync(path, { throwIfNoEntry: false }) !== undefined
  const gitDir = await findGitDir(dirname(folder)).catch((error: unknown) => {
    // Without git there was never a worktree, and nothing to ask it.
    if (isThere) throw error
    return undefined
  })
  const ownDir = gitDir === undefined ? undefined : recordOf(gitDir, path)
  if (gitDir === undefined || ownDir === undefined) {
    if (!isThere) return { ok: true, value: undefined }
    return failed(problem('invalid', path, 'is a worktree that no repository around it knows of'))
  }
  const own = ownPlace({ gitDir, ownDir })
  const head = await runGit(own, ['symbolic-ref', '--quiet', 'HEAD'], SMALL)
  const commit = await runGit(own, ['rev-parse', '--verify', '--quiet', 'HEAD'], SMALL)
  const branch = head.ok ? head.out.trim().replace(/^refs\/heads\//, '') : undefined
  return { ok: true, value: { gitDir, ownDir, path, branch, base: commit.ok ? commit.out.trim() : '' } }
}
