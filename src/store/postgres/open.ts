import { AppError } from '../../model/errors.ts'
import { assembleStore, type StoreOptions } from '../assemble.ts'
import { type Dialect, migrate } from '../schema/migrate.ts'
import type { Store } from '../store.ts'
import { readAddress } from './address.ts'
import { checkTables } from './check.ts'
import { postgresConnection } from './connection.ts'
import { nameFault } from './fault.ts'
import { postgresReaders } from './readers.ts'
import { openSession, type Session } from './session.ts'

const DIALECT: Dialect = {
  key: 'BIGINT PRIMARY KEY',
  int: 'BIGINT',
  // By bytes, as in SQLite; and no update of the system's locales can put an index out of order.
  text: 'TEXT COLLATE "C"',
  clustered: '',
  // Daemons that share a database have a chain each.
  audit_key: 'chain TEXT COLLATE "C" NOT NULL, seq BIGINT NOT NULL, PRIMARY KEY (chain, seq)',
}

const LOCK_SCHEMA = 'SELECT pg_advisory_lock(1869767522, 0)'
const UNLOCK_SCHEMA = 'SELECT pg_advisory_unlock(1869767522, 0)'

const WRITE_SILENCE_MS = 30_000
/** A search through the whole audit, or the check of every table, takes its time. */
const READ_SILENCE_MS = 10 * 60_000

/** SQL_ASCII stores the bytes as they come, which does as well. */
const ENCODINGS = ['UTF8', 'SQL_ASCII']

export async function openPostgresStore(url: string, options: StoreOptions): Promise<Store> {
  const address = readAddress(url)
  const { daemon, leaseMs } = options.identity
  const sessions = new Set<Session>()
  let closed = false

  async function connect(
    silenceMs = READ_SILENCE_MS,
    parameters: Record<string, string> = {},
  ): Promise<Session> {
    const applicationName = `orchub ${daemon}`
    const session = await openSession(address, { applicationName, silenceMs, parameters })
    if (closed) {
      await session.end()
      throw new AppError('SERVICE_STOPPING', 'The store is closing')
    }
    for (const other of sessions) if (other.isLost()) sessions.delete(other)
    sessions.add(session)
    return session
  }

  // A daemon that hangs in the middle of a transaction must not keep its successor from taking over.
  const connectWriter = () =>
    connect(Math.max(WRITE_SILENCE_MS, 2 * leaseMs), { idle_in_transaction_session_timeout: String(leaseMs) })

  async function close() {
    closed = true
    await Promise.all([...sessions].map((session) => session.end()))
  }

  try {
    const writer = await connectWriter()
    await checkEncoding(writer, address.server)
    const connection = postgresConnection(writer, {
      daemon,
      server: address.server,
      connect: connectWriter,
    })
    // Two daemons that start at once do not migrate at once.
    await writer.script(LOCK_SCHEMA)
    await migrate(connection, DIALECT, (script) => writer.script(script))
    await writer.query(UNLOCK_SCHEMA)
    const { reader, stream } = postgresReaders(() => connect(), address.server)
    const check = () => checkTables(reader)
    return await assembleStore({ connection, reader, stream, exclusive: false, check, close }, options)
  } catch (error) {
    await close()
    throw nameFault(address.server, error)
  }
}

async function checkEncoding(session: Session, server: string) {
  const [row] = await session.query<{ encoding: string }>(
    `SELECT current_setting('server_encoding') AS encoding`,
  )
  if (row !== undefined && ENCODINGS.includes(row.encoding)) return
  throw new AppError(
    'CONFIG_INVALID',
    `${server} is encoded in ${row?.encoding}, which cannot hold every text`,
    {
      hint: `Create the database anew: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0.`,
    },
  )
}
