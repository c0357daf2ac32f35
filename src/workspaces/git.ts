import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { AppError } from '../model/errors.ts'
import { formatBytes } from './limits.ts'

export interface GitPlace {
  /** The repository's own folder, or that of a worktree inside it. Undefined: git looks for it from the work tree on. */
  readonly gitDir?: string
  /** Git starts in it; so it can be the path of an open folder, which has no meaning to git itself. */
  readonly workTree?: string
  /** Set besides, and passed on to all that git starts. */
  readonly variables?: Readonly<Record<string, string>>
}

export type GitRun = { ok: true; out: string } | { ok: false; code: number | string; err: string }

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

/** What would lead git elsewhere, whoever set it; and the service's own, among it the operator's token. */
const STRAY = /^(?:GIT|ORC)_/

/** To look into a submodule, git would start itself there, by the settings that the agent put there. */
export const IGNORE_DIRTY = '--ignore-submodules=dirty'

/** Runs git with a limit on its output. What git itself refuses is a value. */
export function runGit(place: GitPlace, args: readonly string[], maxBytes: number): Promise<GitRun> {
  const { gitDir, workTree, variables } = place
  const where = gitDir === undefined ? [] : [`--git-dir=${gitDir}`, ...(workTree ? ['--work-tree=.'] : [])]
  const cwd = workTree ?? gitDir
  return new Promise((resolve, reject) => {
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
      (error, out, err) => {
        if (error === null) return resolve({ ok: true, out })
        const code = (error as NodeJS.ErrnoException).code ?? error.signal ?? 'unknown'
        if (code === 'ENOENT') {
          if (cwd !== undefined && !existsSync(cwd)) {
            return resolve({ ok: false, code, err: `there is no folder ${cwd}` })
          }
          return reject(new AppError('PROGRAM_MISSING', 'There is no git on PATH', { cause: error }))
        }
        const isLarge = code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER'
        resolve({ ok: false, code, err: isLarge ? `it is over ${formatBytes(maxBytes)}` : err.trim() })
      },
    )
    child.stdin?.end()
  })
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
