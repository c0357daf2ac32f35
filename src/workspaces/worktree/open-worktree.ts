import { lstatSync } from 'node:fs'
import { dirname } from 'node:path'
import { attempt, ProblemError, refuse, type WorkspaceResult } from '../problem.ts'
import { openPart } from '../safe-fs/directory.ts'
import type { GitPlace } from './git.ts'

export const WORKTREE = 'worktree'

/** An agent's worktree. Orchub stores it, because the agent could change the worktree's own pointer to its repository. */
export interface Worktree {
  /** The repository's own folder, `.git`. */
  readonly gitDir: string
  /** The folder inside it where git keeps its record of this worktree. */
  readonly ownDir: string
  readonly path: string
  readonly branch: string
  /** The commit that it began from. */
  readonly base: string
}

/** A worktree that was looked up later. Its branch is the current one; undefined if its HEAD is detached. */
export interface FoundWorktree extends Pick<Worktree, 'gitDir' | 'ownDir' | 'path'> {
  readonly branch: string | undefined
}

/** For questions about its HEAD. The repository is given to git, because an agent could have changed the pointer to it. */
export function ownPlace({ gitDir, ownDir }: Pick<Worktree, 'gitDir' | 'ownDir'>): GitPlace {
  return { gitDir: ownDir, variables: { GIT_COMMON_DIR: gitDir } }
}

/**
 * For questions about the files in a worktree. Its folder is held open, and git starts in exactly that one: an agent could
 * have put a link to any other folder in its place.
 */
export function inWorktree<T>(
  worktree: Pick<Worktree, 'gitDir' | 'ownDir' | 'path'>,
  work: (place: GitPlace) => Promise<T>,
): Promise<WorkspaceResult<T>> {
  const { path } = worktree
  return attempt(WORKTREE, async () => {
    const folder = openWorktree(path)
    try {
      const done = await work({ ...ownPlace(worktree), workTree: folder.self.toString() })
      // Git resolves the path of its folder and goes there once more.
      const now = lstatSync(path, { bigint: true, throwIfNoEntry: false })
      if (now?.dev !== folder.dev || now.ino !== folder.ino) {
        refuse('changed', WORKTREE, 'was replaced while git read it')
      }
      return done
    } finally {
      folder.close()
    }
  })
}

function openWorktree(path: string) {
  try {
    return openPart(dirname(path), WORKTREE)
  } catch (error) {
    if (!(error instanceof ProblemError) || error.problem.code !== 'missing') throw error
    return refuse(
      'missing',
      WORKTREE,
      'is gone: the agent deleted or moved it, with every file that was in no commit',
    )
  }
}
