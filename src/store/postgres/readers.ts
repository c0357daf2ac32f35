import type { Reader, SqlValue } from '../store.ts'
import { toPostgres } from './connection.ts'
import { toStoreError } from './fault.ts'
import type { PostgresSession } from './session.ts'

/** Short reads queue on one connection; more connections are opened while a read takes long. */
const MAX_READERS = 4
const ROWS_AT_ONCE = 200

interface Slot {
  session: Promise<PostgresSession> | undefined
  waiting: number
}

/** Reads committed data on connections separate from the writer's. */
export function postgresReaders(connect: () => Promise<PostgresSession>, server: string) {
  const slots: Slot[] = Array.from({ length: MAX_READERS }, () => ({ session: undefined, waiting: 0 }))

  /** A free open slot, else a new one, else the one with the shortest queue. */
  function pick(): Slot {
    return (
      slots.find((slot) => slot.session !== undefined && slot.waiting === 0) ??
      slots.find((slot) => slot.session === undefined) ??
      slots.reduce((least, slot) => (slot.waiting < least.waiting ? slot : least))
    )
  }

  async function sessionOf(slot: Slot): Promise<PostgresSession> {
    slot.session ??= connect()
    const opening = slot.session
    const session = await opening.catch((error) => {
      if (slot.session === opening) slot.session = undefined
      throw error
    })
    if (!session.isLost()) return session
    if (slot.session === opening) slot.session = undefined
    return await sessionOf(slot)
  }

  async function all<Row>(sql: string, params?: readonly SqlValue[]): Promise<Row[]> {
    const text = toPostgres(sql)
    const slot = pick()
    slot.waiting++
    try {
      const session = await sessionOf(slot)
      try {
        return await session.query<Row>(text, params)
      } catch (error) {
        if (!session.isLost()) throw error
        // Reads are safe to repeat: the connection may have been lost long before.
        return await (await sessionOf(slot)).query<Row>(text, params)
      }
    } catch (error) {
      throw toStoreError(server, error)
    } finally {
      slot.waiting--
    }
  }

  /** Uses a connection of its own, with a cursor that holds one snapshot for its whole life. */
  async function* stream<Row>(sql: string, params: readonly SqlValue[] = []): AsyncIterable<Row> {
    const session = await connect()
    try {
      const opened = [
        session.query('BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY'),
        session.query(`DECLARE streamed NO SCROLL CURSOR FOR ${toPostgres(sql)}`, params),
      ]
      await Promise.all(opened)
      for (;;) {
        // Not prepared: the same text returns different columns for each cursor.
        const rows = await session.query<Row>(`FETCH ${ROWS_AT_ONCE} FROM streamed`, [], false)
        yield* rows
        if (rows.length < ROWS_AT_ONCE) return
      }
    } catch (error) {
      throw toStoreError(server, error)
    } finally {
      await session.end()
    }
  }

  const reader: Reader = {
    all,
    get: async <Row>(sql: string, params?: readonly SqlValue[]) => (await all<Row>(sql, params))[0],
  }
  return { reader, stream }
}
