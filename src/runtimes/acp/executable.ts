import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { delimiter, resolve } from 'node:path'

/** The file that would be run, or undefined: known before anything is started, since a failed start says too little. */
export async function findExecutable(
  command: string,
  path: string | undefined,
  cwd: string,
): Promise<string | undefined> {
  const candidates = command.includes('/')
    ? [resolve(cwd, command)]
    : (path ?? '')
        .split(delimiter)
        .filter((folder) => folder !== '')
        .map((folder) => resolve(cwd, folder, command))
  for (const file of candidates) if (await isExecutable(file)) return file
  return undefined
}

async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK)
    return (await stat(file)).isFile()
  } catch {
    return false
  }
}
