import { lstatSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type Directory, openDirectory } from './directory.ts'
import { type GitPlace, runGit } from './git.ts'
import { startPace } from './pace.ts'
import { attempt, type Outcome, ProblemError, refuse } from './problem.ts'
import { removeTree } from './removal.ts'
import type { Worktree } from './worktree.ts'
import { inWorktree } from './worktree-folder.ts'
import { recordOf } from './worktree-record.ts'
import { makeFolder, writeNew } from './writing.ts'

const SMALL = 1024 * 1024

/**
 * Makes the worktree of an agent again where it is gone, on its branch, with all that was committed. Anything else in its
 * place is left as it is. What git knows of it stays, too: commits on no branch are found by that alone. Undefined: it is there.
 */
export function restoreWorktree(
  worktree: Worktree,
  variables: Readonly<Record<string, string>>,
): Promise<Outcome<Worktree | undefined>> {
  const { gitDir, path, branch, base } = worktree
  async function git(place: GitPlace, ...args: string[]) {
    const ran = await runGit({ ...place, variables: { ...place.variables, ...variables } }, args, SMALL)
    if (!ran.ok) refuse('invalid', 'worktree', `is gone, and git does not make it again: ${ran.err}`)
  }
  return attempt('worktree', async () => {
    if (!isGone(path)) return undefined
    const ref = `refs/heads/${branch}`
    const known = await runGit({ gitDir }, ['rev-parse', '--verify', '--quiet', ref], SMALL)
    if (!known.ok) await git({ gitDir }, 'branch', '--no-track', branch, base)
    if (recordOf(gitDir, path) === undefined)
      await git({ gitDir }, 'worktree', 'add', '--quiet', '--no-checkout', path, branch)
    const ownDir = recordOf(gitDir, path) ?? refuse('invalid', 'worktree', 'is gone, and git forgot it')
    // Whoever held it was ended.
    rmSync(join(ownDir, 'index.lock'), { force: true })
    const workspace = openDirectory(dirname(path), { shown: '' })
    // Beside its place, and there when it is whole: half of it would look as if the agent had deleted the rest.
    const draft = `${basename(path)}.new`
    try {
      await makeDraft(workspace, draft, ownDir)
      const filled = await inWorktree({ gitDir, ownDir, path: join(dirname(path), draft) }, (place) =>
        git(place, 'checkout', '--quiet', '--force', branch, '--'),
      )
      if (!filled.ok) throw new ProblemError(filled.problems[0]!)
      await removeTree(workspace, basename(path), startPace())
      renameSync(workspace.at(draft), workspace.at(basename(path)))
    } finally {
      await removeTree(workspace, draft, startPace())
      workspace.close()
    }
    return { ...worktree, ownDir }
  })
}

/** Nothing, or nothing but git's pointer: nobody's work is in it. */
function isGone(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return true
  if (!found.isDirectory()) return false
  return readdirSync(path, { withFileTypes: true }).every((entry) => entry.name === '.git' && entry.isFile())
}

/** With the pointer that makes it a worktree. */
async function makeDraft(workspace: Directory, name: string, ownDir: string): Promise<void> {
  await removeTree(workspace, name, startPace())
  const folder = makeFolder(workspace, name)
  try {
    writeNew(folder, '.git', `gitdir: ${ownDir}\n`, 0o644)
  } finally {
    folder.close()
  }
}
