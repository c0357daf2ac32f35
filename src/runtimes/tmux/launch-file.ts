/** The script that becomes the agent: it alone knows the token, and is gone from the disk before the agent runs. */
import { mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { quoteForShell } from './quote.ts'

export interface LaunchFile {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
}

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Its path. Environment and arguments may hold anything but NUL. */
export async function writeLaunchFile(folder: string, launch: LaunchFile): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const path = join(folder, 'launch.sh')
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
  const variables = Object.entries(env).map(([name, value]) => {
    if (!VARIABLE.test(name)) throw new Error(`not the name of a variable: ${JSON.stringify(name)}`)
    return `export ${name}=${quoteForShell(value)}`
  })
  return [
    'rm -f -- "$0"',
    // With them, a tmux that the agent starts would work on our server.
    'unset TMUX TMUX_PANE TMUX_TMPDIR',
    ...variables,
    `cd -- ${quoteForShell(cwd)} || exit 1`,
    `exec ${argv.map(quoteForShell).join(' ')}`,
    '',
  ].join('\n')
}
