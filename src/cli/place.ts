import { closeSync, existsSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { AppError } from '../model/errors.ts'

export type Env = Readonly<Record<string, string | undefined>>

/** Which team is meant: its orc.yaml and the folder of its state, as far as they are known. */
export interface Place {
  readonly configFile?: string
  readonly stateFolder?: string
}

export const CONFIG_NAME = 'orc.yaml'

/** `--config`, ORC_CONFIG, or the first orc.yaml from the working folder upwards. Nothing is parsed for it. */
export function findPlace(
  named: string | undefined,
  stateFolder: (file: string | undefined, env: Env) => string,
  env: Env = process.env,
): Place {
  const given = named ?? (env.ORC_CONFIG || undefined)
  const configFile = given === undefined ? searchUpwards(process.cwd()) : resolve(given)
  if (configFile !== undefined) return { configFile, stateFolder: stateFolder(configFile, env) }
  return env.ORC_HOME ? { stateFolder: stateFolder(undefined, env) } : {}
}

function searchUpwards(folder: string): string | undefined {
  for (let here = folder; ; here = dirname(here)) {
    const file = join(here, CONFIG_NAME)
    if (existsSync(file)) return file
    if (here === dirname(here)) return undefined
  }
}

/** Where the service listens: ORC_URL, or what the running service noted in its state folder. */
export function findService(place: Place, env: Env = process.env): string {
  if (env.ORC_URL) return env.ORC_URL
  if (place.stateFolder === undefined) {
    throw unreachable(
      `There is no ${CONFIG_NAME} here or in a folder above, so that no service is known`,
      'Go to the folder of the team, or name its file with --config FILE or ORC_CONFIG.',
    )
  }
  const noted = readNote(join(place.stateFolder, 'service.json'))
  if (noted === undefined) {
    const { configFile } = place
    const known = configFile === undefined || existsSync(configFile)
    const start = `Start it: orc serve${env.ORC_CONFIG || configFile === undefined ? '' : ` --config ${configFile}`}`
    throw unreachable(
      known ? 'The service is not running' : `There is no ${configFile}`,
      known
        ? `${start} (it would note its address in ${place.stateFolder})`
        : 'Check the name after --config or in ORC_CONFIG.',
    )
  }
  // After a crash the note stays. Whoever has the port by then must not be sent a token.
  if (!isAlive(noted.pid)) {
    throw unreachable(
      `The service is not running: process ${noted.pid} has ended`,
      'Start it: orc serve. If it runs where its process cannot be seen, such as in a container, set ORC_URL.',
    )
  }
  return noted.socket === undefined ? noted.url : `unix:${noted.socket}`
}

/** An agent's token comes from its environment, the operator's from a file; never from argv, which others can list. */
export function findToken(place: Place, env: Env = process.env): string {
  const fromAgent = env.ORC_TOKEN
  if (fromAgent !== undefined) return checkToken(fromAgent, 'ORC_TOKEN')
  if (place.stateFolder === undefined) {
    throw new AppError(
      'UNAUTHENTICATED',
      'There is no token: ORC_TOKEN is not set, and no state folder is known',
      {
        hint: 'Set ORC_TOKEN, or name the team with --config FILE.',
      },
    )
  }
  const file = join(place.stateFolder, 'operator.token')
  return checkToken(readOwnFile(file), file)
}

function readOwnFile(file: string): string {
  let descriptor: number | undefined
  try {
    descriptor = openSync(file, 'r')
    const { mode } = fstatSync(descriptor)
    if ((mode & 0o077) !== 0) {
      throw new AppError(
        'FORBIDDEN',
        `Others can read the operator's token: ${file} has mode ${octal(mode)}`,
        {
          hint: `chmod 600 ${file}. If others may have read it, delete it, restart the service, and revoke the old one: orc token list`,
        },
      )
    }
    return readFileSync(descriptor, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') {
      throw new AppError(
        'UNAUTHENTICATED',
        `There is no token: ORC_TOKEN is not set, and there is no ${file}`,
        {
          hint: 'The service makes that file when it starts: orc serve. An agent gets its token from: orc token AGENT',
        },
      )
    }
    if (code !== 'EACCES') throw error
    throw new AppError('FORBIDDEN', `The operator's token may not be read: ${file}`, {
      hint: 'Only the user who runs the service is the operator. An agent sets ORC_TOKEN.',
    })
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}

function checkToken(text: string, source: string): string {
  const token = text.trim()
  // Without this, an agent whose variable is empty by mistake would speak as the operator.
  if (token !== '' && /^[\x21-\x7e]+$/.test(token)) return token
  throw new AppError('UNAUTHENTICATED', `${source} ${token === '' ? 'is empty' : 'does not hold a token'}`, {
    hint:
      source === 'ORC_TOKEN'
        ? 'Set it to the output of: orc token AGENT; or unset it.'
        : 'Delete the file and start the service again.',
  })
}

function readNote(file: string): { url: string; pid: number; socket?: string } | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return undefined
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function unreachable(message: string, hint: string): AppError {
  return new AppError('SERVICE_UNREACHABLE', message, { hint })
}

function octal(mode: number): string {
  return `0${(mode & 0o777).toString(8)}`
}
