import postgres from 'postgres'
import { storable } from '../storable.ts'
import type { SqlValue } from '../store.ts'
import type { Address, Endpoint } from './address.ts'
import { isBroken, nameConnectFault } from './fault.ts'
import { broken, oneSocket } from './socket.ts'

/**
 * One connection with one life: once it is lost it stays lost, and every query that waits or comes later is
 * rejected. The driver would rather connect again and carry on, in the middle of what was a transaction.
 */
export interface Session {
  /** Sent at once, answered in order: no need to await one before the next. */
  query<Row>(text: string, params?: readonly SqlValue[], prepare?: boolean): Promise<Row[]>
  /** Several statements without parameters, however long they take. */
  script(text: string): Promise<void>
  isLost(): boolean
  end(): Promise<void>
}

export interface SessionSettings {
  applicationName: string
  /** Behind a dead network a socket stays silent for a quarter of an hour; no answer may take longer than this. */
  silenceMs: number
  /** Settings of the server for this session. */
  parameters?: Record<string, string>
  /** What other sessions notify of, where this one listens. */
  onNotify?(payload: string): void
  onLost?(): void
}

const CONNECT_MS = 10_000
const END_SECONDS = 2

export async function openSession(address: Address, settings: SessionSettings): Promise<Session> {
  let fault: unknown
  for (const endpoint of address.endpoints) {
    try {
      return await openAt(endpoint, address.url, settings)
    } catch (error) {
      fault = error
    }
  }
  throw nameConnectFault(address.server, fault)
}

async function openAt(endpoint: Endpoint, url: string, settings: SessionSettings): Promise<Session> {
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
    // Known to the driver but not to its types. A pipeline must be able to hold the largest batch.
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

  /** The driver forgets the queries it holds back when their connection closes, hence the list of our own. */
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
          // An error of the socket comes before its end; nobody may take this session for alive in between.
          if (isBroken(error)) giveUp(error.message)
          reject(error)
        },
      )
    })
  }

  function listen(ms: number) {
    if (pending.size > 1) return
    silence = setTimeout(() => giveUp('the server does not answer'), ms)
    silence.unref()
  }

  // Durable means on disk, whatever the server's default is.
  const ready = track(
    sql.unsafe(
      `SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`,
    ),
  )
  listen(CONNECT_MS)
  await ready.catch((error) => {
    giveUp('the connection failed')
    throw error
  })
  // Had at once, since the connection is there: one that has to connect first might wait for ever.
  const connection = await sql.reserve()

  return {
    async query<Row>(text: string, params: readonly SqlValue[] = [], prepare = true) {
      if (loss !== undefined) throw loss
      const options = { prepare, simple: false }
      const answer = track(connection.unsafe(text, params.map(toParameter), options))
      listen(settings.silenceMs)
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

/** SQL text may not hold NUL; messages are made storable before they are digested, the rest is here. */
function toParameter(value: SqlValue): SqlValue {
  return typeof value === 'string' && value.includes('\0') ? storable(value) : value
}
