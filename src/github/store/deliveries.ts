import type { Reader, Tx } from '../../store/store.ts'

/** A webhook. Its id is kept for good, so that it is processed once (C25); its payload until it was processed. */
export interface GithubDelivery {
  id: string
  event: string
  payload: string
  attempts: number
  received_at: number
}

/** False if the delivery is already known. */
export async function keepDelivery(
  tx: Tx,
  { id, event, payload }: Pick<GithubDelivery, 'id' | 'event' | 'payload'>,
): Promise<boolean> {
  const rows = await tx.all<{ id: string }>(
    `INSERT INTO github_deliveries (id, event, payload, state, not_before, received_at) VALUES (?, ?, ?, 'waiting', ?, ?)
     ON CONFLICT (id) DO NOTHING RETURNING id`,
    [id, event, payload, tx.now, tx.now],
  )
  return rows.length === 1
}

export async function nextDelivery(reader: Reader, now: number): Promise<GithubDelivery | undefined> {
  return await reader.get<GithubDelivery>(
    `SELECT id, event, payload, attempts, received_at FROM github_deliveries WHERE state = 'waiting' AND not_before <= ?
      ORDER BY received_at, id LIMIT 1`,
    [now],
  )
}

/** When the next waiting delivery is due. */
export async function nextDeliveryDue(reader: Reader): Promise<number | undefined> {
  const row = await reader.get<{ due: number | null }>(
    `SELECT MIN(not_before) AS due FROM github_deliveries WHERE state = 'waiting'`,
  )
  return row?.due ?? undefined
}

/** False if the delivery has already ended. */
export async function endDelivery(
  tx: Tx,
  id: string,
  state: 'routed' | 'ignored' | 'failed',
  note: string | null,
): Promise<boolean> {
  const rows = await tx.all<{ id: string }>(
    `UPDATE github_deliveries SET state = ?, note = ?, payload = '' WHERE id = ? AND state = 'waiting' RETURNING id`,
    [state, note, id],
  )
  return rows.length === 1
}

/** Changes when a webhook arrives or is processed. */
export async function deliveriesVersion(reader: Reader): Promise<string> {
  const row = await reader.get<{ newest: number | null; waiting: number }>(
    `SELECT (SELECT MAX(received_at) FROM github_deliveries) AS newest,
            (SELECT COUNT(*) FROM github_deliveries WHERE state = 'waiting') AS waiting`,
  )
  return JSON.stringify(row)
}

export async function putOffDelivery(tx: Tx, id: string, until: number, note: string): Promise<void> {
  await tx.run(
    `UPDATE github_deliveries SET attempts = attempts + 1, not_before = ?, note = ? WHERE id = ? AND state = 'waiting'`,
    [until, note, id],
  )
}

/** The first start of the service, or the first webhook of older stores that don't know it. */
export async function takenSince(tx: Tx): Promise<number> {
  await tx.run(
    `INSERT INTO github_since (id, at) SELECT 1, COALESCE(MIN(received_at), ?) FROM github_deliveries WHERE true
     ON CONFLICT (id) DO NOTHING`,
    [tx.now],
  )
  return (await tx.get<{ at: number }>('SELECT at FROM github_since WHERE id = 1'))!.at
}

/** The deliveries that never arrived. */
export async function unknownDeliveries(reader: Reader, ids: readonly string[]): Promise<string[]> {
  const unknown: string[] = []
  for (const id of ids) {
    const row = await reader.get('SELECT id FROM github_deliveries WHERE id = ?', [id])
    if (row === undefined) unknown.push(id)
  }
  return unknown
}

/** A delivery without its payload. */
interface DeliveryOutline {
  id: string
  event: string
  state: string
  note: string | null
  received_at: number
}

const OUTLINE = 'id, event, state, note, received_at'

export async function readDelivery(reader: Reader, id: string): Promise<DeliveryOutline | undefined> {
  return await reader.get<DeliveryOutline>(`SELECT ${OUTLINE} FROM github_deliveries WHERE id = ?`, [id])
}

/** Newest first. */
export async function readDeliveries(reader: Reader, limit: number): Promise<DeliveryOutline[]> {
  return await reader.all<DeliveryOutline>(
    `SELECT ${OUTLINE} FROM github_deliveries ORDER BY received_at DESC, id LIMIT ?`,
    [limit],
  )
}

/** The time of the last webhook or scheduled trigger. */
export async function latestDeliveryAt(reader: Reader): Promise<number | undefined> {
  const row = await reader.get<{ at: number | null }>('SELECT MAX(received_at) AS at FROM github_deliveries')
  return row?.at ?? undefined
}
