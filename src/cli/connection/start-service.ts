import { spawn } from 'node:child_process'
import { openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { AppError } from '../../base/errors.ts'
import { isRunning } from '../../base/process.ts'
import type { Client } from '../../client/client.ts'
import { SESSION_MARK } from '../../runtimes/processes.ts'
import type { Invocation } from '../verb.ts'
import { openClientIfRunning } from './client.ts'
import { loadTeam } from './offline.ts'
import type { TeamLocation } from './team-location.ts'

interface DetachedService {
  client: Client
  logFile: string
  facts: { pid: number; url?: string }
  /** Another process started this service at the same moment. */
  isOthers?: true
}

/** Enough for a large team on a slow disk; a service that takes longer is stuck. */
const PATIENCE_MS = 60_000
const LOOK_AGAIN_MS = 50
const OTHER_MS = 10_000
const LOG_TAIL = 2000

/** Starts `orc serve` with `flags` in the background and waits until it answers. */
export async function startDetached(
  { location, option }: Invocation,
  flags: readonly string[] = [],
): Promise<DetachedService> {
  const { readTeam } = await import('../../main.ts')
  // Report configuration errors here rather than in the log of the background process.
  const config = await loadTeam(location, { read: readTeam })
  const { makeStateFolder } = await import('../../config/config.ts')
  makeStateFolder(config.stateFolder)
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
    // Without the session mark, because an agent may start the service and end before it.
    { detached: true, stdio: ['ignore', log, log], env: { ...process.env, [SESSION_MARK]: undefined } },
  )
  child.unref()
  const { pid } = child
  const deadline = Date.now() + PATIENCE_MS
  while (pid !== undefined && isRunning(pid) && child.exitCode === null && Date.now() < deadline) {
    const client = await openClientIfRunning(location)
    const state = await client?.state().catch(() => undefined)
    if (client !== undefined && state?.pid === pid) return { client, logFile, facts: { pid } }
    await wait(LOOK_AGAIN_MS)
  }
  const said = readFileSync(logFile, 'utf8').slice(-LOG_TAIL).trim()
  const other = said.includes('STORE_LOCKED') ? await otherService(location) : undefined
  if (other !== undefined) return { ...other, logFile, isOthers: true }
  throw new AppError('SERVICE_UNREACHABLE', `The service did not start\n${said || '(its log is empty)'}`, {
    hint: `The log is ${logFile}; orc doctor checks what the service needs.`,
  })
}

/** The other process holds the store but may not listen yet. */
async function otherService(
  location: TeamLocation,
): Promise<Pick<DetachedService, 'client' | 'facts'> | undefined> {
  const deadline = Date.now() + OTHER_MS
  while (Date.now() < deadline) {
    const client = await openClientIfRunning(location)
    const state = await client?.state().catch(() => undefined)
    if (client !== undefined && state !== undefined) return { client, facts: { pid: state.pid } }
    await wait(LOOK_AGAIN_MS)
  }
  return undefined
}
