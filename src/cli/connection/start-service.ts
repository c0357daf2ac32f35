import { spawn } from 'node:child_process'
import { existsSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { AppError } from '../../base/errors.ts'
import { isRunning } from '../../base/process.ts'
import type { Client } from '../../client/client.ts'
import { SESSION_MARK } from '../../runtimes/processes.ts'
import { showWorking } from '../output/layout.ts'
import { remark } from '../output/print.ts'
import type { Invocation } from '../verb.ts'
import { isUnreachable, loadTeam, openClientIfRunning } from './client.ts'
import { findTeamLocation, noteOfRuns, searchUpwards, type TeamLocation } from './connection.ts'

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

/** Starts `orc service serve` with `flags` in the background and waits until it answers. */
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
  const isStarting = () => pid !== undefined && isRunning(pid) && child.exitCode === null
  const started = await untilAnswering(location, PATIENCE_MS, isStarting, pid)
  if (started !== undefined) return { ...started, logFile }
  const logTail = readFileSync(logFile, 'utf8').slice(-LOG_TAIL).trim()
  // Another process holds the store but may not listen yet. A third one may have emptied the log since then.
  const isTaken = logTail === '' || logTail.includes('STORE_LOCKED')
  const other = isTaken ? await untilAnswering(location, OTHER_MS) : undefined
  if (other !== undefined) return { ...other, logFile, isOthers: true }
  throw new AppError('SERVICE_UNREACHABLE', `The service did not start\n${logTail || '(its log is empty)'}`, {
    hint: `The log is ${logFile}; orc service doctor checks what the service needs.`,
  })
}

/** Waits until a service answers here, or the one with that pid; undefined if none does in time. */
async function untilAnswering(
  location: TeamLocation,
  patienceMs: number,
  isWorthWaiting = () => true,
  pid?: number,
): Promise<Pick<DetachedService, 'client' | 'facts'> | undefined> {
  const deadline = Date.now() + patienceMs
  while (isWorthWaiting() && Date.now() < deadline) {
    const client = await openClientIfRunning(location)
    const state = await client?.state().catch(() => undefined)
    if (client !== undefined && state !== undefined && (pid ?? state.pid) === state.pid)
      return { client, facts: { pid: state.pid } }
    await wait(LOOK_AGAIN_MS)
  }
  return undefined
}

/**
 * A team without agents, for plans of commands and people. Port 0, because many folders may have such a team. Files
 * that earlier versions wrote are recognized by this exact text.
 */
const TEAM_WITHOUT_AGENTS = `# Made by orc run, for plans that need no team. Put an orc.yaml beside the plan to have one.
agents: { nobody: {} }
service: { port: 0 }
`

/** The team that runs a plan: the one that other commands use here, else the one around the plan, else one without agents. */
export function locationForPlan(location: TeamLocation, folder: string): TeamLocation {
  if (location.configFile !== undefined || location.stateFolder !== undefined) return location
  return findTeamLocation(searchUpwards(folder) ?? join(folder, '.orc', 'orc.yaml'))
}

/** True for the generated team: a configuration needs one agent, so its `nobody` is a placeholder. */
export function hasNoAgents(location: TeamLocation): boolean {
  if (!isMadeForPlans(location)) return false
  return !existsSync(location.configFile) || readFileSync(location.configFile, 'utf8') === TEAM_WITHOUT_AGENTS
}

function isMadeForPlans(location: TeamLocation): location is Required<TeamLocation> {
  const { configFile, stateFolder } = location
  return configFile !== undefined && stateFolder !== undefined && configFile === join(stateFolder, 'orc.yaml')
}

/** Called only before a service starts: looking at a plan leaves no files behind. */
async function makeTeamWithoutAgents(location: TeamLocation): Promise<void> {
  if (!isMadeForPlans(location) || existsSync(location.configFile)) return
  const { configFile, stateFolder } = location
  const { makeStateFolder } = await import('../../config/config.ts')
  makeStateFolder(stateFolder)
  writeFileSync(configFile, TEAM_WITHOUT_AGENTS)
}

/** The `--config` option that a command typed in this folder needs to reach that team. */
export function optionFor(location: TeamLocation): string {
  const here = findTeamLocation()
  const isSame = location.configFile === undefined || here.configFile === location.configFile
  if (isSame || process.env.ORC_URL !== undefined) return ''
  return ` --config ${relative(process.cwd(), location.configFile)}`
}

export interface ServiceForRun {
  client: Client
  /** The process that this command started for the run, and that ends with it. */
  ours?: number
}

/** Uses the running service or starts one in the background, never in this process: a run must outlive its terminal. */
export async function serviceForRun(
  invocation: Invocation,
  beforeStart = async () => {},
): Promise<ServiceForRun> {
  const running = await openAnswering(invocation.location)
  if (running !== undefined) return { client: running }
  await beforeStart()
  await makeTeamWithoutAgents(invocation.location)
  const working = showWorking('starting a service for this run')
  try {
    const { client, facts, isOthers } = await startDetached(invocation, ['--for-runs'])
    return isOthers ? { client } : { client, ours: facts.pid }
  } finally {
    working.end()
  }
}

/** Undefined if no service answers here, for example because it was killed and left its service.json. */
export async function openAnswering(location: TeamLocation): Promise<Client | undefined> {
  if (isMadeForPlans(location) && !existsSync(location.configFile) && !process.env.ORC_URL) return undefined
  const client = await openClientIfRunning(location)
  try {
    await client?.health()
    return client
  } catch (error) {
    // ORC_URL names one particular service; don't start another.
    if (process.env.ORC_URL !== undefined) throw error
    return undefined
  }
}

/** After this many kills, somebody stops the service on purpose. */
const MOST_RESTARTS = 3

/**
 * Restarts the service of a watched run after it was killed, if `orc run` started it. A service that a person runs, or
 * has stopped, is left alone.
 */
export function keepServiceForRun(first: ServiceForRun, invocation: Invocation, returnCommand: () => string) {
  let service = first
  let restarts = 0
  return {
    current: () => service,
    async startAgain(): Promise<boolean> {
      if (!(await wasKilled(invocation.location))) return false
      if (++restarts > MOST_RESTARTS) {
        throw new AppError('SERVICE_UNREACHABLE', `The service was killed ${restarts} times`, {
          hint: `To start it once more: ${returnCommand()}`,
        })
      }
      remark('The service was killed; starting it again.')
      try {
        service = await serviceForRun(invocation)
      } catch (error) {
        // The service may have been killed while starting, which counts as another restart.
        if (!isUnreachable(error) || restarts === MOST_RESTARTS) throw error
      }
      return true
    },
  }
}

export type KeptService = ReturnType<typeof keepServiceForRun>

/** The pid alone proves nothing (a zombie, or a reused number), but a live service holds the store's lock. */
async function wasKilled(location: TeamLocation): Promise<boolean> {
  const noted = noteOfRuns(location)
  if (noted === undefined || !noted.isAlive) return noted !== undefined
  const { readOffline } = await import('../../main.ts')
  const snapshot = readOffline(await loadTeam(location))
  if (typeof snapshot === 'string') return false
  snapshot.close()
  return true
}

/** Longer than any agent takes to stop. */
const STOPPING_MS = 60_000

/** Stops the service this command started, unless it has other runs by now. */
export async function endServiceOfRun({ ours }: ServiceForRun, location: TeamLocation): Promise<void> {
  const client = ours === undefined ? undefined : await openClientIfRunning(location)
  const state = await client?.state().catch(() => undefined)
  if (client === undefined || ours === undefined || state?.pid !== ours) return
  try {
    const { runs } = await client.runs({ state: 'open' })
    if (runs.length > 0) return
    await client.stop('end')
  } catch (error) {
    // The service has already ended by itself, or another watcher stopped it.
    if (!isUnreachable(error)) throw error
  }
  const deadline = Date.now() + STOPPING_MS
  while (isRunning(ours) && Date.now() < deadline) await wait(20)
}
