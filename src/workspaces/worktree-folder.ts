import { lstatSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { type Directory, openPart } from './directory.ts'
import type { GitPlace } from './git.ts'
import { attempt, type Outcome, ProblemError, refuse } from './problem.ts'

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

/** By someone who did not make it. Its branch is the one it is on by now; undefined where its HEAD is detached. */
export type FoundWorktree = Omit<Worktree, 'branch'> & { readonly branch: string | undefined }

type Place = Pick<Worktree, 'gitDir' | 'ownDir' | 'path'>

/** For questions about its HEAD. Which repository it belongs to is said, and not read where an agent could have written it. */
export function ownPlace({ gitDir, ownDir }: Pick<Place, 'gitDir' | 'ownDir'>): GitPlace {
  return { gitDir: ownDir, variables: { GIT_COMMON_DIR: gitDir } }
}

/**
 * For questions about the files in a worktree. Its folder is held open, and git starts in exactly that one: an agent could
 * have put a link to any other folder in its place.
 */
export function inWorktree<T>(worktree: Place, work: (place: GitPlace) => Promise<T>): Promise<Outcome<T>> {
  const shown = basename(worktree.path)
  return attempt(shown, async () => {
    const folder = openWorktree(worktree, shown)
    try {
      const done = await work({ ...ownPlace(worktree), workTree: folder.self.toString() })
      // Git asks for the path of the folder it is in, and goes there once more.
      if (!isAt(worktree.path, folder)) {
        refuse('changed', shown, 'was exchanged for something else while git looked at it')
      }
      return done
    } finally {
      folder.close()
    }
  })
}

function openWorktree({ path }: Place, shown: string): Directory {
  try {
    return openPart(dirname(path), shown)
  } catch (error) {
    if (!(error instanceof ProblemError) || error.problem.code !== 'missing') throw error
    return refuse(
      'missing',
      shown,
      'is gone: the agent deleted it or moved it away, and with it all that was in no commit',
    )
  }
}

function isAt(path: string, { dev, ino }: Directory): boolean {
  const now = lstatSync(path, { bigint: true, throwIfNoEntry: false })
  return now?.dev === dev && now.ino === ino
}
