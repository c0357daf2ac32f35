import type { IdKind } from '../../base/ids.ts'
import { LAST_KEY } from '../keys.ts'
import type { Connection, SqlValue } from '../store.ts'
import { isCollision, nameFault, unknownOutcome } from './fault.ts'
import { CHANNEL } from './hints.ts'
import type { Session } from './session.ts'
import { toPostgres } from './statement.ts'

/**
 * Held by a transaction from its first key to its end, so that keys become visible in their order, as with a
 * single writer: whoever has read up to a key never misses a smaller one that is committed later. A sequence
 * could not promise that between two daemons. One lock for all kinds, lest two daemons take them crosswise.
 */
const LOCK_KEYS = `SELECT pg_advisory_xact_lock(1869767522, 1)`

interface ConnectionOptions {
  daemon: string
  server: string
  /** A new session in place of a lost one. */
  connect(): Promise<Session>
}

/** The one connection that writes. A lost one is replaced at the next `begin`, never within a transaction. */
export function postgresConnection(first: Session, options: ConnectionOptions): Connection {
  const { server } = options
  let session = first
  /** The first fault of this transaction: all later ones only say that it is over. */
  let fault: unknown
  let wrote = false
  /** Settled once all that was sent is answered, since answers come in order. */
  let sent = Promise.resolve()
  const taken = new Map<IdKind, number>()
  /** Keys of failed transactions are not used again. */
  const highest = new Map<IdKind, number>()

  function send(text: string, params?: readonly SqlValue[]) {
    sent = session.query(text, params).then(
      () => {},
      (error) => {
        fault ??= error
      },
    )
  }

  async function ask<Row>(text: string, params?: readonly SqlValue[]): Promise<Row[]> {
    const before = sent
    try {
      const rows = await session.query<Row>(text, params)
      await before
      if (fault === undefined) return rows
    } catch (error) {
      await before
      fault ??= error
    }
    throw nameFault(server, fault)
  }

  return {
    engine: 'postgres',
    skipLocked: 'FOR UPDATE SKIP LOCKED',
    lockShared: 'FOR SHARE',
    lockRow: 'FOR UPDATE',
    isCollision,

    async begin() {
      fault = undefined
      wrote = false
      taken.clear()
      if (session.isLost()) session = await options.connect()
      send('BEGIN ISOLATION LEVEL READ COMMITTED')
    },

    all: (sql, params) => ask(toPostgres(sql), params),
    get: async <Row>(sql: string, params?: readonly SqlValue[]) =>
      (await ask<Row>(toPostgres(sql), params))[0],

    run(sql, params) {
      wrote = true
      send(toPostgres(sql), params)
    },

    async commit() {
      // Lost before the commit was sent, so nothing was stored; asking gives the loss its name.
      if (session.isLost()) await ask('COMMIT')
      if (wrote) send('SELECT pg_notify($1, $2)', [CHANNEL, options.daemon])
      try {
        await session.query('COMMIT')
        await sent
      } catch (error) {
        if (session.isLost()) throw unknownOutcome(server, error)
        fault ??= error
      }
      // PostgreSQL answers COMMIT without an error even if it could only roll back.
      if (fault !== undefined) throw nameFault(server, fault)
    },

    async rollback() {
      if (session.isLost()) return
      try {
        await session.query('ROLLBACK')
      } catch {
        await session.end()
      }
    },

    async nextKey(kind) {
      let last = taken.get(kind)
      if (last === undefined) {
        send(LOCK_KEYS)
        const [row] = await ask<{ last: number | null }>(LAST_KEY[kind])
        last = taken.get(kind) ?? Math.max(row?.last ?? 0, highest.get(kind) ?? 0)
      }
      taken.set(kind, last + 1)
      highest.set(kind, last + 1)
      return last + 1
    },
  }
}
