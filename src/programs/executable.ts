import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { delimiter, resolve } from 'node:path'
import { AppError } from '../base/errors.ts'

interface ExecutableQuery {
  /** A name to look up on PATH, or a path. */
  readonly command: string
  /** Base of relative paths. */
  readonly cwd: string
  /** The agent's PATH. */
  readonly path: string | undefined
  /** The program's common name and how to install it, if known. */
  readonly program?: string | undefined
  readonly install?: string
}

/** Returns the absolute path of the executable, so that a missing program is found before anything starts. */
export async function findExecutable(query: ExecutableQuery): Promise<string> {
  for (const candidate of candidates(query)) if (await isExecutable(candidate)) return candidate
  const { command, program } = query
  const missing = `no ${command}${command.includes('/') ? '' : ' on PATH'}`
  const message = program === undefined ? `Not found: ${missing}` : `${program} isn't installed (${missing})`
  throw new AppError('PROGRAM_MISSING', message, { hint: hintFor(query), data: { command } })
}

function hintFor({ command, install }: ExecutableQuery): string {
  if (/\s/.test(command))
    return 'Under `with:`, `command:` is the executable only; list its arguments under `args:`.'
  const by = install === undefined ? '' : ` with \`${install}\``
  return `Install it${by}, or set \`command:\` under \`with:\` to its executable.`
}

function candidates({ command, cwd, path }: ExecutableQuery): string[] {
  if (command.includes('/')) return [resolve(cwd, command)]
  return (path ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => resolve(cwd, folder, command))
}

async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK)
    return (await stat(file)).isFile()
  } catch {
    return false
  }
}
