import { type ExecFileException, execFile } from 'node:child_process'
import { AppError } from '../../model/errors.ts'

/** Subscriptions, and clients that want no output, came with it. */
const OLDEST = [3, 2] as const

/** Throws an AppError when tmux is missing or too old. */
export async function requireTmux(command: string, env: Readonly<Record<string, string>>): Promise<void> {
  const said = await new Promise<string>((resolve, reject) => {
    execFile(command, ['-V'], { env }, (error, stdout) => {
      if (error === null) resolve(stdout.trim())
      else reject(missing(command, error))
    })
  })
  const version = /(\d+)\.(\d+)/.exec(said)
  // A development version (`tmux master`) names no number and is new.
  if (version === null || isAtLeast(Number(version[1]), Number(version[2]))) return
  throw new AppError('RUNTIME_MISSING', `${said} is too old: agents in panes need tmux ${OLDEST.join('.')}`, {
    hint: 'Install a newer tmux, or run the agents with `runtime: acp`.',
  })
}

function isAtLeast(major: number, minor: number): boolean {
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])
}

function missing(command: string, cause: ExecFileException): AppError {
  const why = cause.code === 'ENOENT' ? 'is not installed' : `does not run: ${cause.message}`
  return new AppError('RUNTIME_MISSING', `${command} ${why}`, {
    hint: 'Install tmux (`apt install tmux`, `brew install tmux`), or run the agents with `runtime: acp`.',
    cause,
  })
}
