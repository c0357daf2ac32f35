import { mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { VARIABLE } from '../environment.ts'
import { quoteForShell } from './quoting.ts'
import { SERVER_VARIABLES } from './server.ts'

/** Contains the agent's token. */
export const LAUNCH_FILE = 'launch.sh'

/** The script that starts the agent. Only it contains the token, and it deletes itself before the agent runs. */
interface LaunchFile {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
}

/**
 * With TMUX set, a tmux started by the agent would use our server; the other values may come from an earlier
 * service.
 */
const UNSET = ['TMUX', 'TMUX_PANE', ...SERVER_VARIABLES]

/** Some shells exit when these are set. People do export UID, for containers. */
const READ_ONLY_IN_SHELLS = /^(?:UID|EUID|PPID|OPTIND|SHELLOPTS|BASHOPTS|BASH_VERSINFO)$/

/** Returns its path. Environment and arguments may contain anything except NUL. */
export async function writeLaunchFile(folder: string, launch: LaunchFile): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const path = join(folder, LAUNCH_FILE)
  // A file created by someone else would keep its owner and mode.
  await rm(path, { force: true })
  const file = await open(path, 'wx', 0o700)
  try {
    await file.writeFile(renderLaunchFile(launch))
  } finally {
    await file.close()
  }
  return path
}

function renderLaunchFile({ argv, env, cwd }: LaunchFile): string {
  const exported: string[] = []
  const assignments: string[] = []
  for (const [name, value] of Object.entries(env)) {
    if (!VARIABLE.test(name)) throw new Error(`not a variable name: ${JSON.stringify(name)}`)
    if (READ_ONLY_IN_SHELLS.test(name)) assignments.push(`${name}=${value}`)
    else exported.push(`export ${name}=${quoteForShell(value)}`)
  }
  // Command lines are world-readable; no secret has such a name.
  const words = assignments.length === 0 ? argv : ['/usr/bin/env', ...assignments, ...argv]
  return [
    'rm -f -- "$0"',
    `unset ${UNSET.join(' ')}`,
    ...exported,
    `cd -- ${quoteForShell(cwd)} || exit 1`,
    `exec ${words.map(quoteForShell).join(' ')}`,
    '',
  ].join('\n')
}
