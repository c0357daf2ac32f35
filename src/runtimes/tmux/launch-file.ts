/** The script that becomes the agent: it alone knows the token, and is gone from the disk before the agent runs. */
import { mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { VARIABLE } from '../environment.ts'
import { SERVER_VARIABLES } from './environment.ts'
import { quoteForShell } from './quote.ts'

export interface LaunchFile {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
}

/** With TMUX, a tmux that the agent starts would work on our server; the rest may be of an earlier service. */
const UNSET = ['TMUX', 'TMUX_PANE', ...SERVER_VARIABLES]

/** Set, some shells would end at once. People do export UID, for containers. */
const READ_ONLY_IN_SHELLS = /^(?:UID|EUID|PPID|OPTIND|SHELLOPTS|BASHOPTS|BASH_VERSINFO)$/

export const LAUNCH_FILE = 'launch.sh'

/** Its path. Environment and arguments may hold anything but NUL. */
export async function writeLaunchFile(folder: string, launch: LaunchFile): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const path = join(folder, LAUNCH_FILE)
  // A file that someone else made would keep its owner and mode.
  await rm(path, { force: true })
  const file = await open(path, 'wx', 0o700)
  try {
    await file.writeFile(renderLaunchFile(launch))
  } finally {
    await file.close()
  }
  return path
}

export function renderLaunchFile({ argv, env, cwd }: LaunchFile): string {
  const exported: string[] = []
  const given: string[] = []
  for (const [name, value] of Object.entries(env)) {
    if (!VARIABLE.test(name)) throw new Error(`not the name of a variable: ${JSON.stringify(name)}`)
    if (READ_ONLY_IN_SHELLS.test(name)) given.push(`${name}=${value}`)
    else exported.push(`export ${name}=${quoteForShell(value)}`)
  }
  // On the command line, where anyone can read: nothing that is secret has such a name.
  const words = given.length === 0 ? argv : ['/usr/bin/env', ...given, ...argv]
  return [
    'rm -f -- "$0"',
    `unset ${UNSET.join(' ')}`,
    ...exported,
    `cd -- ${quoteForShell(cwd)} || exit 1`,
    `exec ${words.map(quoteForShell).join(' ')}`,
    '',
  ].join('\n')
}
