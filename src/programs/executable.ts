import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join, resolve } from 'node:path'
import { AppError } from '../model/errors.ts'

export interface ExecutableQuery {
  /** A name to be found on PATH, or a path. */
  readonly command: string
  /** Where a relative path begins. */
  readonly cwd: string
  /** The PATH that the agent will have. */
  readonly path: string | undefined
  /** The program as people call it, and how they get it. */
  readonly program: string
  readonly install: string
}

/** The whole path of the executable, so that a program that is not there is known before anything is started. */
export async function findExecutable(query: ExecutableQuery): Promise<string> {
  for (const candidate of candidates(query)) if (await isExecutable(candidate)) return candidate
  const where = query.command.includes('/') ? '' : ' on PATH'
  throw new AppError('PROGRAM_MISSING', `${query.program} is not there: no ${query.command}${where}`, {
    hint: `Install it with \`${query.install}\`, or name its executable with \`command:\` under \`with:\`.`,
    data: { command: query.command },
  })
}

function candidates({ command, cwd, path }: ExecutableQuery): string[] {
  if (command.includes('/')) return [isAbsolute(command) ? command : resolve(cwd, command)]
  return (path ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, command))
}

async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK)
    return (await stat(file)).isFile()
  } catch {
    return false
  }
}
