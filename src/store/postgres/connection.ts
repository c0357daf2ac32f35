import type { IdKind } from '../../base/ids.ts'
import { LAST_KEY } from '../schema/migrations.ts'
import type { SqlValue, StoreConnection } from '../store.ts'
import { isCollision, toStoreError, unknownOutcome } from './fault.ts'
import { CHANNEL } from './notifications.ts'
import type { PostgresSession } from './session.ts'

/**
 * A transaction holds this lock from its first key to its end, which makes keys visible in order, as with a single
 * writer: after reading up to a key, no smaller one appears. A sequence can't guarantee that between two daemons. One lock
 * covers all kinds to avoid deadlocks.
 */
const LOCK_KEYS = `SELECT pg_advisory_xact_lock(1869767522, 1)`

interface ConnectionOptions {
  daemon: string
  server: string
  /** Opens a session to replace a lost one. */
  connect(): Promise<PostgresSession>
}

/**
 * The only connection that writes. States:
 * - idle: `begin` replaces a lost session, clears `fault`, `wrote` and `taken`, and leads to open.
 * - open: statements are sent without waiting for their answers. `commit` or `rollback` leads to idle.
 * - failed: a statement has set `fault`. The next read or the commit throws it; `rollback` leads to idle.
 */
export function postgresConnection(first: PostgresSession, options: ConnectionOptions): StoreConnection {
  const { server } = options
  let session = first
  /** The first fault of this transaction: later ones only report that it was aborted. */
  let fault: unknown
  let wrote = false
  /** The last statement sent. Answers come in order, so it settles after all earlier ones. */
  let sent = Promise.resolve()
  const taken = new Map<IdKind, number>()
  /** Includes the keys of failed transactions, which aren't reused. */
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
    throw toStoreError(server, fault)
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
      // Lost before COMMIT was sent: nothing was stored. The query throws the named fault.
      if (session.isLost()) await ask('COMMIT')
      if (wrote) send('SELECT pg_notify($1, $2)', [CHANNEL, options.daemon])
      try {
        await session.query('COMMIT')
        await sent
      } catch (error) {
        if (session.isLost()) throw unknownOutcome(server, error)
        fault ??= error
      }
      // PostgreSQL reports no error for a COMMIT that rolled back.
      if (fault !== undefined) throw toStoreError(server, fault)
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

const translated = new Map<string, string>()

/** Replaces `?` by `$1`, `$2` … and caches the result: there are few distinct statements. */
export function toPostgres(sql: string): string {
  let text = translated.get(sql)
  if (text === undefined) {
    text = translate(sql)
    translated.set(sql, text)
  }
  return text
}

function translate(sql: string): string {
  if (/'[^']*\?[^']*'/.test(sql.replaceAll(/'[^'?]*'/g, ''))) {
    throw new Error(`A ? in a string literal would be taken for a parameter: ${sql}`)
  }
  let count = 0
  return sql.replaceAll('?', () => `$${++count}`)
}
