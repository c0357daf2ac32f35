import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '../../base/errors.ts'
import { backoff, wait } from '../../client/backoff.ts'
import { type Client, createClient, type FetchLike } from '../../client/client.ts'
import { isTemporary } from '../../client/transport.ts'
import type { Config, LoadedConfig } from '../../config/config.ts'
import type { OfflineStore } from '../../main.ts'
import type { StoredRuns } from '../../runs/read-runs-offline.ts'
import { noAddress, noTeam } from '../errors.ts'
import { complain, paint, remark } from '../output/print.ts'
import { openConnection, type TeamLocation } from './connection.ts'

/** Opens the typed client of the running service, with the caller's token. */
export async function openClient(location: TeamLocation): Promise<Client> {
  const { address, token } = await openConnection(location)
  const socket = socketFetch(address)
  if (socket === undefined && !/^https?:$/.test(URL.parse(address)?.protocol ?? '')) throw noAddress(address)
  return createClient({ url: address, token, retries: 0, ...(socket === undefined ? {} : { fetch: socket }) })
}

/** Returns undefined when no service runs here, for commands that work without one. */
export async function openClientIfRunning(location: TeamLocation): Promise<Client | undefined> {
  return await openClient(location).catch(ignoreUnreachable)
}

/** Returns undefined when no service answers, for commands that can do without one. */
export async function askIfRunning<T>(
  location: TeamLocation,
  ask: (client: Client) => Promise<T>,
): Promise<T | undefined> {
  const client = await openClientIfRunning(location)
  return client && (await ask(client).catch(ignoreUnreachable))
}

export function ignoreUnreachable(error: unknown): undefined {
  if (!isUnreachable(error)) throw error
}

export function isUnreachable(error: unknown): boolean {
  return error instanceof AppError && error.code === 'SERVICE_UNREACHABLE'
}

/** The newest sequence number. Read it before a list, so that following from it misses nothing in between. */
export async function lastSequence(client: Client, signal: AbortSignal): Promise<number> {
  let last = 0
  for await (const entry of client.audit({ limit: 1 }, { signal })) last = entry.seq
  return last
}

/** Says why nothing happens while everything is halted. */
export async function noteHalt(client: Client): Promise<void> {
  const { halted } = await client.health()
  if (halted) complain(paint('yellow', 'Orchub is halted; resume it with `orc service go`.', 'err'))
}

/** `fetch` for a service on a Unix socket, which the built-in one does not reach; undefined for other addresses. */
export function socketFetch(address: string): FetchLike | undefined {
  if (!address.startsWith('unix:')) return undefined
  const socketPath = address.slice('unix:'.length)
  const { request } = process.getBuiltinModule('node:http')
  const { Readable } = process.getBuiltinModule('node:stream')
  const { text } = process.getBuiltinModule('node:stream/consumers')
  return (url, { method, headers, body, signal }) =>
    new Promise((resolve, reject) => {
      const { pathname, search, host } = new URL(url)
      const options = { socketPath, method, path: pathname + search, headers: { ...headers, host } }
      const sent = request({ ...options, ...(signal === undefined ? {} : { signal }) }, (answer) => {
        resolve({
          status: answer.statusCode!,
          // Lazy, because a stream can be consumed only once: as a body or as text.
          get body() {
            return Readable.toWeb(answer) as ReadableStream<Uint8Array>
          },
          text: () => text(answer),
        })
      })
      sent.on('error', reject)
      sent.end(body)
    })
}

/** Reaction to an unreachable service: wait and retry, retry at once (a new one was started), or return a value without it. */
export type WhenUnreachable<T> = 'wait' | 'again' | { value: T }

/**
 * Repeats work across restarts of the service, each time with a client of the service that runs by then. If the first
 * attempt finds no service, that error is thrown, so a wrong address shows at once; with `whileAway`, that decides.
 */
export async function throughRestarts<T>(
  location: TeamLocation,
  signal: AbortSignal,
  work: (client: Client) => Promise<T>,
  whileAway?: () => Promise<WhenUnreachable<T>>,
): Promise<T> {
  if (whileAway === undefined) await (await openClient(location)).health()
  let isAway = false
  for (let failures = 0; ; failures++) {
    try {
      const client = await openClient(location)
      if (isAway) {
        await client.health()
        remark('The service is back.')
        isAway = false
        failures = 0
      }
      return await work(client)
    } catch (error) {
      if (signal.aborted || !isTemporary(error)) throw error
      const instead = (await whileAway?.()) ?? 'wait'
      signal.throwIfAborted()
      if (typeof instead === 'object') return instead.value
      if (instead === 'again') continue
      if (!isAway) {
        remark('The service is unreachable; waiting for it. Press Ctrl-C to leave.')
      }
      isAway = true
    }
    await wait(backoff(failures), signal)
    signal.throwIfAborted()
  }
}

/** Loads the team's configuration; throws an error that lists the mistakes with their lines. */
export async function loadTeam({ configFile }: TeamLocation, how: LoadOptions = {}): Promise<Config> {
  if (configFile === undefined || !existsSync(configFile)) throw noTeam(configFile)
  const { formatProblems, readConfig } = await import('../../config/config.ts')
  const loaded = (how.read ?? readConfig)(configFile)
  if (!loaded.ok) {
    const problems = formatProblems(loaded.error, configFile)
    throw new AppError('CONFIG_INVALID', `The configuration has mistakes\n\n${problems}\n`, {
      hint: `orc rules check ${configFile} shows them again.`,
    })
  }
  if (loaded.value.warnings.length > 0) how.onWarnings?.(formatProblems(loaded.value.warnings, configFile))
  return loaded.value.config
}

interface LoadOptions {
  /** `readTeam` of main.ts also checks the settings of runtimes and programs, but takes longer to load. */
  read?: (file: string) => LoadedConfig
  onWarnings?: (text: string) => void
}

/** Enough for a large team on a slow disk to start; a service that takes longer is stuck. */
const STARTING_MS = 10_000
/** Long enough for a service to start answering or to end, or for another command to release the store. */
const READABLE_MS = 1500
const LOOK_AGAIN_MS = 50

/** Asks the running service or, if none is running, the store. Repeats while another process holds the store. */
async function serviceOrStore<T>(
  location: TeamLocation,
  online: (client: Client) => Promise<T>,
  offline: (unreachable: unknown) => Promise<{ value: T } | { locked: unknown }>,
  patienceMs: number,
): Promise<T> {
  const deadline = Date.now() + patienceMs
  for (;;) {
    try {
      return await online(await openClient(location))
    } catch (error) {
      if (!isUnreachable(error)) throw error
      const read = await offline(error)
      if ('value' in read) return read.value
      if (Date.now() > deadline) throw read.locked
    }
    await sleep(LOOK_AGAIN_MS)
  }
}

export type Offline = OfflineStore & { config: Config }

/**
 * Asks the running service or, if none is running, opens the store. A service that is still starting holds the store's
 * lock without answering; `orc service serve & orc token create Worker` waits for it.
 */
export function onlineOrOffline<T>(
  location: TeamLocation,
  online: (client: Client) => Promise<T>,
  offline: (store: Offline) => Promise<T>,
): Promise<T> {
  const open = async () => {
    try {
      return { value: await withStore(location, offline) }
    } catch (error) {
      if (error instanceof AppError && error.code === 'STORE_LOCKED') return { locked: error }
      throw error
    }
  }
  return serviceOrStore(location, online, open, STARTING_MS)
}

/** Opens the store when no service is running. Access to the file makes the caller the operator, unless ORC_TOKEN is set. */
export async function withStore<T>(
  location: TeamLocation,
  use: (offline: Offline) => Promise<T>,
): Promise<T> {
  if (process.env.ORC_TOKEN !== undefined) {
    throw new AppError(
      'FORBIDDEN',
      'Only the operator may do this, but ORC_TOKEN identifies you as an agent',
      {
        hint: 'Unset ORC_TOKEN to act as the operator.',
      },
    )
  }
  const config = await loadTeam(location)
  const { openOffline } = await import('../../main.ts')
  const offline = await openOffline(config)
  try {
    return await use({ ...offline, config })
  } finally {
    await offline.close()
  }
}

/**
 * Asks the running service about runs or, if none is running, reads the store, because a service that `orc run` started
 * ends with its run. Writes nothing. Throws SERVICE_UNREACHABLE if a service holds the store but doesn't answer.
 */
export function reachRuns<T>(
  location: TeamLocation,
  online: (client: Client) => Promise<T>,
  offline: (runs: StoredRuns) => Promise<T>,
  patienceMs = READABLE_MS,
): Promise<T> {
  const read = async (unreachable: unknown) => {
    // Only the operator reads the store, and only when ORC_URL doesn't name a service elsewhere.
    if (process.env.ORC_TOKEN !== undefined || process.env.ORC_URL) throw unreachable
    const config = await loadTeam(location)
    const { readOffline } = await import('../../main.ts')
    const snapshot = readOffline(config)
    if (snapshot === 'locked') return { locked: unreachable }
    if (snapshot === 'unreadable') throw unreachable
    const { readStoredRuns } = await import('../../runs/read-runs-offline.ts')
    try {
      return { value: await offline(readStoredRuns(snapshot.reader, Date.now)) }
    } finally {
      snapshot.close()
    }
  }
  return serviceOrStore(location, online, read, patienceMs)
}
