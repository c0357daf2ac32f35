import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import postgres from 'postgres'
import { AppError } from '../../base/errors.ts'
import { type SqlValue, storable } from '../store.ts'
import { isBroken, toConnectError } from './fault.ts'

/**
 * A connection that never reconnects: once lost, it rejects all pending and later queries. The driver itself would
 * reconnect and continue in the middle of a lost transaction.
 */
export interface PostgresSession {
  /** Sends at once and answers in order: there is no need to await one query before the next. */
  query<Row>(text: string, params?: readonly SqlValue[], prepare?: boolean): Promise<Row[]>
  /** Runs several statements without parameters and without a timeout. */
  script(text: string): Promise<void>
  isLost(): boolean
  end(): Promise<void>
}

export interface SessionSettings {
  applicationName: string
  /** Maximum time for an answer: on a dead network, a socket stays silent for a quarter of an hour. */
  silenceMs: number
  /** Settings of the server for this session. */
  parameters?: Record<string, string>
  /** Notifications from other sessions. */
  onNotify?(payload: string): void
  onLost?(): void
}

const CONNECT_MS = 10_000
const END_SECONDS = 2

export async function openSession(address: Address, settings: SessionSettings): Promise<PostgresSession> {
  let fault: unknown
  for (const endpoint of address.endpoints) {
    try {
      return await openAt(endpoint, address.url, settings)
    } catch (error) {
      fault = error
    }
  }
  throw toConnectError(address.server, fault)
}

async function openAt(
  endpoint: ServerEndpoint,
  url: string,
  settings: SessionSettings,
): Promise<PostgresSession> {
  const pending = new Set<(error: Error) => void>()
  const socket = oneSocket(endpoint, CONNECT_MS)
  let loss: Error | undefined
  let silence: NodeJS.Timeout | undefined

  const sql = postgres(url, {
    max: 1,
    host: 'host' in endpoint ? endpoint.host : undefined,
    fetch_types: false,
    connect_timeout: 0,
    idle_timeout: 0,
    max_lifetime: null,
    onnotice: () => {},
    onclose: () => lose('the connection was lost'),
    connection: { application_name: settings.applicationName, ...settings.parameters },
    types: { int8: { to: 20, from: [20], parse: Number, serialize: String } },
    // Options that the driver's types lack. The pipeline must hold the largest batch.
    ...{ socket: socket.next, max_pipeline: 100_000 },
    ...{ onnotify: (_channel: string, payload: string) => settings.onNotify?.(payload) },
  })

  function lose(reason: string) {
    const isNew = loss === undefined
    loss ??= broken('CONNECTION_CLOSED', reason)
    if (isNew) settings.onLost?.()
    clearTimeout(silence)
    for (const reject of pending) reject(loss)
    pending.clear()
  }

  function giveUp(reason: string) {
    lose(reason)
    socket.destroy()
  }

  /** The driver forgets queued queries when their connection closes, so they are tracked here. */
  function track<T>(query: PromiseLike<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      pending.add(reject)
      const answered = () => {
        pending.delete(reject)
        if (pending.size === 0) clearTimeout(silence)
        else silence?.refresh()
      }
      query.then(
        (rows) => {
          answered()
          resolve(rows)
        },
        (error) => {
          answered()
          // A socket reports its error before it closes: mark the session as lost right away.
          if (isBroken(error)) giveUp(error.message)
          reject(error)
        },
      )
    })
  }

  function startSilenceTimer(ms: number) {
    if (pending.size > 1) return
    silence = setTimeout(() => giveUp('the server does not answer'), ms)
    silence.unref()
  }

  // Commits must be on disk regardless of the server's default.
  const ready = track(
    sql.unsafe(
      `SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`,
    ),
  )
  startSilenceTimer(CONNECT_MS)
  await ready.catch((error) => {
    giveUp('the connection failed')
    throw error
  })
  // The connection is open, so this resolves at once; without one it could wait forever.
  const connection = await sql.reserve()

  return {
    async query<Row>(text: string, params: readonly SqlValue[] = [], prepare = true) {
      if (loss !== undefined) throw loss
      const options = { prepare, simple: false }
      const answer = track(connection.unsafe(text, params.map(toParameter), options))
      startSilenceTimer(settings.silenceMs)
      return (await answer).slice() as unknown as Row[]
    },
    async script(text) {
      if (loss !== undefined) throw loss
      await track(connection.unsafe(text))
    },
    isLost: () => loss !== undefined,
    async end() {
      if (loss !== undefined) return
      connection.release()
      await sql.end({ timeout: END_SECONDS })
      giveUp('the connection is closed')
    },
  }
}

/** PostgreSQL text can't hold NUL. Messages were made storable before their digest; this covers all other text. */
function toParameter(value: SqlValue): SqlValue {
  return typeof value === 'string' && value.includes('\0') ? storable(value) : value
}

interface SocketSource {
  /** Called by the driver. Returns a connected socket the first time, then throws. */
  next(): Promise<Socket>
  /** Closes the socket at once, without waiting for the server. */
  destroy(): void
}

/** Lets the driver connect once only: it reconnects endlessly to a server that accepts and closes connections. */
function oneSocket(endpoint: ServerEndpoint, timeoutMs: number): SocketSource {
  let socket: Socket | undefined
  return {
    async next() {
      if (socket !== undefined) throw broken('CONNECTION_CLOSED', 'the server closed the connection')
      const connecting = connect('path' in endpoint ? endpoint : { ...endpoint, noDelay: true })
      socket = connecting
      const late = () => connecting.destroy(broken('CONNECT_TIMEOUT', 'no answer in time'))
      const deadline = setTimeout(late, timeoutMs)
      try {
        await once(connecting, 'connect')
      } finally {
        clearTimeout(deadline)
      }
      // For errors after the driver has removed its own listener.
      connecting.on('error', () => {})
      return Object.assign(connecting, endpoint)
    },
    destroy() {
      socket?.destroy()
    },
  }
}

function broken(code: string, message: string): Error {
  return Object.assign(new Error(message), { code })
}

export interface Address {
  url: string
  /** Description for people, without the password. */
  server: string
  /** In the order to try them. */
  endpoints: readonly ServerEndpoint[]
}

type ServerEndpoint = { path: string } | { host: string; port: number }

/** The driver's parsed address, which its types don't declare. */
interface ReadOptions {
  host: string[]
  port: number[]
  path: string | false | undefined
  user: string
  database: string
}

export function readAddress(url: string): Address {
  const options = parse(url)
  // An unencoded / or # in the password ends the host early: the rest would become the database or the port.
  if (options === undefined || url.includes('#') || options.database.includes('@')) {
    // Leave out the address and the parser's error: both contain the password.
    throw new AppError('CONFIG_INVALID', 'The URL of the PostgreSQL store is not valid', {
      hint: 'Write postgres://user:password@host:5432/database, and percent-encode special characters in the password.',
    })
  }
  const { host, port, path, user, database } = options
  const endpoints: ServerEndpoint[] =
    typeof path === 'string' ? [{ path }] : host.map((name, index) => ({ host: name, port: port[index]! }))
  const places = endpoints.map((one) => ('path' in one ? one.path : `${one.host}:${one.port}`))
  return { url, server: `PostgreSQL at ${user}@${places.join(',')}/${database}`, endpoints }
}

function parse(url: string): ReadOptions | undefined {
  if (!/^postgres(ql)?:\/\//.test(url)) return undefined
  try {
    return postgres(url, { max: 0 }).options as unknown as ReadOptions
  } catch {
    return undefined
  }
}
