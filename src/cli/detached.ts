import { spawn } from 'node:child_process'
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Client } from '../client/client.ts'
import { AppError } from '../model/errors.ts'
import { isRunning } from '../model/process.ts'
import { openClientIfRunning } from './connect.ts'
import { loadTeam } from './offline.ts'
import type { Invocation } from './verb.ts'

export interface Detached {
  client: Client
  logFile: string
  facts: { pid: number; url?: string }
}

/** A large team on a slow disk; longer than this it is not starting but stuck. */
const PATIENCE_MS = 60_000
const LOOK_AGAIN_MS = 50
const LOG_TAIL = 2000

/** Starts `orc serve` in the background, and waits until it answers. `flags`: for it. */
export async function startDetached(
  { place, option }: Invocation,
  flags: readonly string[] = [],
): Promise<Detached> {
  const { readTeam } = await import('../main.ts')
  // Mistakes are told here, not in a log that nobody looks into.
  const config = await loadTeam(place, { read: readTeam })
  mkdirSync(config.stateFolder, { recursive: true, mode: 0o700 })
  const logFile = join(config.stateFolder, 'service.log')
  writeFileSync(logFile, '', { mode: 0o600 })
  const log = openSync(logFile, 'a')
  const options = ['port', 'host', 'log-level'].flatMap((name) => {
    const value = option(name)
    return value === undefined ? [] : [`--${name}`, value]
  })
  const child = spawn(
    process.execPath,
    [...process.execArgv, process.argv[1]!, 'serve', '--config', config.file!, ...options, ...flags],
    { detached: true, stdio: ['ignore', log, log] },
  )
  child.unref()
  const { pid } = child
  const deadline = Date.now() + PATIENCE_MS
  while (pid !== undefined && isRunning(pid) && child.exitCode === null && Date.now() < deadline) {
    const client = await openClientIfRunning(place)
    const state = await client?.state().catch(() => undefined)
    if (client !== undefined && state?.pid === pid) return { client, logFile, facts: { pid } }
    await wait(LOOK_AGAIN_MS)
  }
  const said = readFileSync(logFile, 'utf8').slice(-LOG_TAIL).trim()
  throw new AppError('SERVICE_UNREACHABLE', `The service did not start:\n${said || 'it said nothing'}`, {
    hint: `Its log is ${logFile}; orc doctor checks its parts.`,
  })
}
