import postgres from 'postgres'
import { storable } from '../storable.ts'
import type { SqlValue } from '../store.ts'
import type { Address } from './address.ts'
import { nameConnectFault } from './fault.ts'

/**
 * One connection with one life: once it is lost it stays lost, and every query that waits or comes later is
 * rejected. The driver would rather connect again and carry on, in the middle of what was a transaction.
 */
export interface Session {
  /** Sent at once, answered in order: no need to await one before the next. */
  query<Row>(text: string, params?: readonly SqlValue[]): Promise<Row[]>
  /** Several statements without parameters, however long they take. */
  script(text: string): Promise<void>
  isLost(): boolean
  end(): Promise<void>
}

export interface SessionSettings {
  applicationName: string
  /** Behind a dead network a socket stays silent for a quarter of an hour; nothing may take longer than this. */
  silenceMs: number
  /** Settings of the server for this session. */
  parameters?: Record<string, string>
}

const CONNECT_SECONDS = 10
const END_SECONDS = 2

export async function openSession(address: Address, settings: SessionSettings): Promise<Session> {
  const pending = new Set<(error: Error) => void>()
  let loss: Error | undefined
  let silence: NodeJS.Timeout | undefined

  const sql = postgres(address.url, {
    max: 1,
    fetch_types: false,
    connect_timeout: CONNECT_SECONDS,
    idle_timeout: 0,
    max_lifetime: null,
    onnotice: () => {},
    onclose: () => lose('the connection was lost'),
    connection: { application_name: settings.applicationName, ...settings.parameters },
    types: { int8: { to: 20, from: [20], parse: Number, serialize: String } },
    ...UNDECLARED,
  })

  function lose(reason: string) {
    loss ??= Object.assign(new Error(reason), { code: 'CONNECTION_CLOSED' })
    clearTimeout(silence)
    for (const reject of pending) reject(loss)
    pending.clear()
  }

  async function destroy(reason: string) {
    lose(reason)
    await sql.end({ timeout: 0 })
  }

  const connection = await connect(sql).catch(async (error) => {
    await destroy('the connection failed')
    throw nameConnectFault(address.server, error)
  })

  /** The driver forgets the queries it holds back when their connection closes, hence the list of our own. */
  function track<T>(query: PromiseLike<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      pending.add(reject)
      const settle = <V>(end: (value: V) => void) => {
        return (value: V) => {
          pending.delete(reject)
          if (pending.size === 0) clearTimeout(silence)
          else silence?.refresh()
          end(value)
        }
      }
      query.then(settle(resolve), settle(reject))
    })
  }

  function watch() {
    if (pending.size > 1) return
    silence = setTimeout(() => void destroy('the server does not answer'), settings.silenceMs)
    silence.unref()
  }

  return {
    async query<Row>(text: string, params: readonly SqlValue[] = []) {
      if (loss !== undefined) throw loss
      const answer = track(connection.unsafe(text, params.map(toParameter), { prepare: true, ...EXTENDED }))
      watch()
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
      lose('the connection is closed')
    },
  }
}

/** Known to the driver but not to its types. A pipeline must be able to hold the largest batch. */
const UNDECLARED = { max_pipeline: 100_000 }
const EXTENDED = { simple: false }

/**
 * A first query, then a reservation, which is then had at once: a reservation that has to connect first would
 * wait for ever if the server went away just then. An own deadline, since the driver tries without end to reach
 * a server that accepts connections only to close them.
 */
async function connect(sql: postgres.Sql<{ int8: number }>): Promise<postgres.ReservedSql<{ int8: number }>> {
  let deadline: NodeJS.Timeout | undefined
  const tooLate = new Promise<never>((_, reject) => {
    const late = () => reject(Object.assign(new Error('no answer in time'), { code: 'CONNECT_TIMEOUT' }))
    deadline = setTimeout(late, (CONNECT_SECONDS + 1) * 1000)
  })
  try {
    // Durable means on disk, whatever the server's default is.
    const ready = sql.unsafe(
      `SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`,
    )
    await Promise.race([ready, tooLate])
    return await sql.reserve()
  } finally {
    clearTimeout(deadline)
  }
}

/** SQL text may not hold NUL; messages are made storable before they are digested, the rest is here. */
function toParameter(value: SqlValue): SqlValue {
  return typeof value === 'string' && value.includes('\0') ? storable(value) : value
}
