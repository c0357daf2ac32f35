import { lstatSync } from 'node:fs'
import { basename, dirname, relative } from 'node:path'
import { type Directory, openDirectory, openFolders } from './directory.ts'
import { showName } from './entry-name.ts'
import type { GitPlace } from './git.ts'
import { attempt, type Outcome, ProblemError, refuse } from './problem.ts'

/** An agent's worktree: kept by the orchestrator, as the worktree's own pointer could be changed. */
export interface Worktree {
  /** The repository's own folder, `.git`. */
  readonly gitDir: string
  /** Where git keeps this worktree, inside it. */
  readonly ownDir: string
  readonly path: string
  /** The agent's folder, where the worktree need not lie directly in it: from there on, the agent can have put links. */
  readonly within?: string
  readonly branch: string
  /** The commit that it began from. */
  readonly base: string
}

/** By someone who did not make it. Its branch is the one it is on by now; undefined where its HEAD is detached. */
export type FoundWorktree = Omit<Worktree, 'branch'> & { readonly branch: string | undefined }

type Place = Pick<Worktree, 'gitDir' | 'ownDir' | 'path' | 'within'>

/** For questions about its HEAD. Which repository it belongs to is said, and not read where an agent could have written it. */
export function ownPlace({ gitDir, ownDir }: Pick<Place, 'gitDir' | 'ownDir'>): GitPlace {
  return { gitDir: ownDir, variables: { GIT_COMMON_DIR: gitDir } }
}

/**
 * For questions about the files in a worktree. Its folder is held open, and git starts in exactly that one: an agent could
 * have put a link to any other folder in its place.
 */
export function inWorktree<T>(worktree: Place, work: (place: GitPlace) => Promise<T>): Promise<Outcome<T>> {
  const shown = nameOf(worktree)
  return attempt(shown, async () => {
    const folder = openWorktree(worktree)
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

/** As its agent knows it. */
export function nameOf({ path, within = dirname(path) }: Place): string {
  return showName(relative(within, path) || basename(path))
}

function openWorktree(worktree: Place): Directory {
  const { path, within = dirname(path) } = worktree
  const root = openDirectory(within, { shown: '' })
  try {
    // An agent can make its whole folder one.
    if (path === within) return openDirectory(within, { shown: nameOf(worktree) })
    const opened = openFolders(root, relative(within, path).split('/'))
    if (opened.ok) return opened.value
    if (opened.problem.code !== 'missing') throw new ProblemError(opened.problem)
    return refuse(
      'missing',
      nameOf(worktree),
      'is gone: the agent deleted it or moved it away, and with it all that was in no commit',
    )
  } finally {
    root.close()
  }
}

function isAt(path: string, { dev, ino }: Directory): boolean {
  const now = lstatSync(path, { bigint: true, throwIfNoEntry: false })
  return now?.dev === dev && now.ino === ino
}
