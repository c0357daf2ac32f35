import type { Reader, SqlValue } from '../store.ts'
import { nameFault } from './fault.ts'
import type { Session } from './session.ts'
import { toPostgres } from './statement.ts'

/** Reads are short and share a connection one behind the other; these are for when one is not that short. */
const MAX_READERS = 4
/** Kept for the next stream; more are opened when more are read at a time. */
const IDLE_STREAMS = 2
const ROWS_AT_ONCE = 200

interface Slot {
  session: Promise<Session> | undefined
  waiting: number
}

/** Reads of committed data, apart from the connection that writes. */
export function postgresReaders(connect: () => Promise<Session>, server: string) {
  const slots: Slot[] = Array.from({ length: MAX_READERS }, () => ({ session: undefined, waiting: 0 }))
  const idle: Session[] = []

  /** An open one that is free, else a new one, else the one with the least to do. */
  function pick(): Slot {
    return (
      slots.find((slot) => slot.session !== undefined && slot.waiting === 0) ??
      slots.find((slot) => slot.session === undefined) ??
      slots.reduce((least, slot) => (slot.waiting < least.waiting ? slot : least))
    )
  }

  async function sessionOf(slot: Slot): Promise<Session> {
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
        // A read may be repeated: the connection was perhaps lost long before it was used.
        return await (await sessionOf(slot)).query<Row>(text, params)
      }
    } catch (error) {
      throw nameFault(server, error)
    } finally {
      slot.waiting--
    }
  }

  /** By a cursor, which holds one snapshot however long it takes. */
  async function* stream<Row>(sql: string, params: readonly SqlValue[] = []): AsyncIterable<Row> {
    const session = takeIdle() ?? (await connect())
    try {
      const opened = [
        session.query('BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY'),
        session.query(`DECLARE streamed NO SCROLL CURSOR FOR ${toPostgres(sql)}`, params),
      ]
      await Promise.all(opened)
      for (;;) {
        // Not prepared: the same words give other columns with every cursor.
        const rows = await session.query<Row>(`FETCH ${ROWS_AT_ONCE} FROM streamed`, [], false)
        yield* rows
        if (rows.length < ROWS_AT_ONCE) return
      }
    } catch (error) {
      throw nameFault(server, error)
    } finally {
      await giveBack(session)
    }
  }

  function takeIdle(): Session | undefined {
    for (let session = idle.pop(); session !== undefined; session = idle.pop()) {
      if (!session.isLost()) return session
    }
    return undefined
  }

  async function giveBack(session: Session) {
    if (session.isLost()) return
    try {
      await session.query('ROLLBACK')
      if (idle.length < IDLE_STREAMS) idle.push(session)
      else await session.end()
    } catch {
      await session.end()
    }
  }

  const reader: Reader = {
    all,
    get: async <Row>(sql: string, params?: readonly SqlValue[]) => (await all<Row>(sql, params))[0],
  }
  return { reader, stream }
}
