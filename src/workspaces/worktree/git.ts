import { type ExecFileException, execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { formatBytes } from '../../base/bytes.ts'
import { AppError } from '../../base/errors.ts'
import { errnoOf } from '../problem.ts'

export interface GitPlace {
  /** The repository's own folder, or that of a worktree inside it. Undefined: git looks for it from the work tree on. */
  readonly gitDir?: string
  /** Git starts in it; so it can be the path of an open folder, which has no meaning to git itself. */
  readonly workTree?: string
  /** Set besides, and passed on to all that git starts. */
  readonly variables?: Readonly<Record<string, string>>
}

type GitRun = { ok: true; out: string } | { ok: false; code: number | string; err: string }

const TIMEOUT_MS = 60_000

/**
 * An agent may have changed the repository and its settings. Nothing that a setting could start runs: no hook, no
 * monitor, no pager, no outside diff, no filter for signatures. A filter of file contents still may: it finds nothing of
 * the service's own in its environment.
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

/** To look into a submodule, git would start itself there, by the settings that the agent put there. */
export const IGNORE_DIRTY = '--ignore-submodules=dirty'

/** Runs git with a limit on its output. What git itself refuses is a value, and so is that it cannot be started so. */
export function runGit(
  place: GitPlace,
  args: readonly string[],
  maxBytes: number,
  input = '',
): Promise<GitRun> {
  const { gitDir, workTree, variables } = place
  const where = gitDir === undefined ? [] : [`--git-dir=${gitDir}`, ...(workTree ? ['--work-tree=.'] : [])]
  const cwd = workTree ?? gitDir
  return new Promise((resolve, reject) => {
    const end = (error: ExecFileException | null, out: string, err: string) => {
      if (error === null) return resolve({ ok: true, out })
      const code = error.code ?? error.signal ?? 'unknown'
      if (code === 'ENOENT') {
        if (cwd !== undefined && !existsSync(cwd)) {
          return resolve({ ok: false, code, err: `there is no folder ${cwd}` })
        }
        return reject(new AppError('PROGRAM_MISSING', 'There is no git on PATH', { cause: error }))
      }
      resolve({ ok: false, code, err: err.trim() || reasonOf(error, code, maxBytes) })
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
      // Arguments that are too long for the system, say: this alone is thrown, and not told like all else.
      if (errnoOf(error) === undefined) throw error
      end(error as ExecFileException, '', '')
    }
  })
}

/** The reason if git printed nothing. An exit code of git itself needs none: silence can be its answer. */
function reasonOf({ killed }: ExecFileException, code: number | string, maxBytes: number): string {
  if (typeof code === 'number') return ''
  if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return `it is over ${formatBytes(maxBytes)}`
  return killed ? `it took more than ${TIMEOUT_MS / 1000} s` : `git cannot be run (${code})`
}

function environment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !STRAY.test(name))
  // No transport: to fetch what is missing, git would start what a setting names.
  const closed = {
    GIT_TERMINAL_PROMPT: '0',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_ALLOW_PROTOCOL: '',
    GIT_NO_LAZY_FETCH: '1',
  }
  return { ...Object.fromEntries(kept), ...closed, LC_ALL: 'C' }
}
