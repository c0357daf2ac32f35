import { type ExecFileException, execFile } from 'node:child_process'
import { existsSync, lstatSync } from 'node:fs'
import { dirname } from 'node:path'
import { formatBytes } from '../../base/bytes.ts'
import { AppError } from '../../base/errors.ts'
import { failure, type Result } from '../../base/result.ts'
import { attempt, errnoOf, ProblemError, refuse, type WorkspaceResult } from '../problem.ts'
import { openPart } from '../safe-fs/directory.ts'

export interface GitLocation {
  /** The repository's own folder, or that of a worktree inside it. Undefined: git searches for it from the work tree upwards. */
  readonly gitDir?: string
  /** Git starts in it, so it may be the path of an open folder. */
  readonly workTree?: string
  /** Added to the environment of git and everything it starts. */
  readonly variables?: Readonly<Record<string, string>>
}

interface GitFailure {
  code: number | string
  /** From stderr, or the reason why git did not run. */
  message: string
}

const TIMEOUT_MS = 60_000

/**
 * An agent may have changed the repository's settings, so nothing that a setting could start may run: no hook, monitor, pager,
 * external diff or signature program. Content filters may still run; their environment has none of the service's variables.
 */
const SAFE = [
  '-c core.hooksPath=/dev/null',
  '-c core.fsmonitor=false',
  '-c core.pager=cat',
  '-c core.quotePath=true',
  '-c log.showSignature=false',
  '-c gc.auto=0',
  '-c protocol.allow=never',
  '-c submodule.recurse=false',
].flatMap((option) => option.split(' '))

/** Variables that would redirect git, and the service's own, such as the operator's token. */
const STRAY = /^(?:GIT|ORC)_/

/** To inspect a submodule, git would start itself there with settings that the agent controls. */
export const IGNORE_DIRTY = '--ignore-submodules=dirty'

/** Runs git with a limit on its output. A failure of git, or to start it, is a value. */
export function runGit(
  location: GitLocation,
  args: readonly string[],
  maxBytes: number,
  input = '',
): Promise<Result<string, GitFailure>> {
  const { gitDir, workTree, variables } = location
  const where = gitDir === undefined ? [] : [`--git-dir=${gitDir}`, ...(workTree ? ['--work-tree=.'] : [])]
  const cwd = workTree ?? gitDir
  return new Promise((resolve, reject) => {
    const end = (error: ExecFileException | null, out: string, err: string) => {
      if (error === null) return resolve({ ok: true, value: out })
      const code = error.code ?? error.signal ?? 'unknown'
      if (code === 'ENOENT') {
        if (cwd !== undefined && !existsSync(cwd)) {
          return resolve(failure({ code, message: `there is no folder ${cwd}` }))
        }
        return reject(new AppError('PROGRAM_MISSING', 'There is no git on PATH', { cause: error }))
      }
      resolve(failure({ code, message: err.trim() || reasonOf(error, code, maxBytes) }))
    }
    try {
      const child = execFile(
        'git',
        [...SAFE, ...where, ...args],
        {
          cwd,
          encoding: 'utf8',
          maxBuffer: maxBytes,
          timeout: TIMEOUT_MS,
          killSignal: 'SIGKILL',
          env: { ...environment(), ...variables },
        },
        end,
      )
      // Git may exit before it has read everything, and then reports the reason itself.
      child.stdin?.on('error', () => {})
      child.stdin?.end(input)
    } catch (error) {
      // Arguments that are too long for the system are thrown instead of being reported by the callback.
      if (errnoOf(error) === undefined) throw error
      end(error as ExecFileException, '', '')
    }
  })
}

/** The reason if git printed nothing. A plain exit code needs none: silence can be git's answer. */
function reasonOf({ killed }: ExecFileException, code: number | string, maxBytes: number): string {
  if (typeof code === 'number') return ''
  if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return `it is over ${formatBytes(maxBytes)}`
  return killed ? `it took more than ${TIMEOUT_MS / 1000} s` : `git cannot be run (${code})`
}

function environment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !STRAY.test(name))
  // No transport: to fetch missing objects, git would start a program that a setting names.
  const closed = {
    GIT_TERMINAL_PROMPT: '0',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_ALLOW_PROTOCOL: '',
    GIT_NO_LAZY_FETCH: '1',
  }
  return { ...Object.fromEntries(kept), ...closed, LC_ALL: 'C' }
}

export const WORKTREE = 'worktree'

/** An agent's worktree. Orchub stores it, because the agent could change the worktree's own pointer to its repository. */
export interface Worktree {
  /** The repository's own folder, `.git`. */
  readonly gitDir: string
  /** The folder inside it where git keeps its record of this worktree. */
  readonly ownDir: string
  readonly path: string
  readonly branch: string
  /** The commit that it started from. */
  readonly base: string
}

/** A worktree that was looked up later. Its branch is the current one; undefined if its HEAD is detached. */
export interface FoundWorktree extends Pick<Worktree, 'gitDir' | 'ownDir' | 'path'> {
  readonly branch: string | undefined
}

/** For queries about its HEAD. Git gets the repository's path, because an agent could have changed the pointer to it. */
export function gitLocationOf({ gitDir, ownDir }: Pick<Worktree, 'gitDir' | 'ownDir'>): GitLocation {
  return { gitDir: ownDir, variables: { GIT_COMMON_DIR: gitDir } }
}

/**
 * For queries about the files in a worktree. Its folder stays open, and git starts in exactly that one, because an agent could
 * have replaced it by a link.
 */
export function inWorktree<T>(
  worktree: Pick<Worktree, 'gitDir' | 'ownDir' | 'path'>,
  work: (location: GitLocation) => Promise<T>,
): Promise<WorkspaceResult<T>> {
  const { path } = worktree
  return attempt(WORKTREE, async () => {
    using folder = openWorktree(path)
    const done = await work({ ...gitLocationOf(worktree), workTree: folder.self.toString() })
    // Git resolves the path of its folder and opens it once more.
    const now = lstatSync(path, { bigint: true, throwIfNoEntry: false })
    if (now?.dev !== folder.dev || now.ino !== folder.ino) {
      refuse('changed', WORKTREE, 'was replaced while git read it')
    }
    return done
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
      'is gone: the agent deleted or moved it, including its uncommitted files',
    )
  }
}
