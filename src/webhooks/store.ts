import { type AuditRow, type ReadEntry, toEntry } from '../audit/store.ts'
import type { Reader, Tx } from '../store/store.ts'

/**
 * A webhook: its position in the audit and its health. Events that wait are rows of the queue, without their text, which
 * is read from the audit when an event is sent.
 */
export interface WebhookRow {
  name: string
  /** Hash of the address; a new address starts over. */
  target: string
  /** `dead`: nothing is sent until a test succeeds. */
  state: 'active' | 'dead'
  /** The last audit entry that was checked. */
  seen: number
  failing_since: number | null
  /** Failures in a row. */
  failures: number
  not_before: number | null
  last_error: string | null
  sent: number
  dropped: number
  sent_at: number | null
}

export interface QueuedRow {
  seq: number
  attempts: number
}

const COLUMNS =
  'name, target, state, seen, failing_since, failures, not_before, last_error, sent, dropped, sent_at'

export async function readWebhooks(reader: Reader, chain: string): Promise<WebhookRow[]> {
  return await reader.all<WebhookRow>(`SELECT ${COLUMNS} FROM webhooks WHERE chain = ? ORDER BY name`, [
    chain,
  ])
}

export async function findWebhook(
  reader: Reader,
  chain: string,
  name: string,
): Promise<WebhookRow | undefined> {
  return await reader.get<WebhookRow>(`SELECT ${COLUMNS} FROM webhooks WHERE chain = ? AND name = ?`, [
    chain,
    name,
  ])
}

export function keepWebhook(tx: Tx, chain: string, row: WebhookRow): void {
  const { name, target, state, seen, failing_since, failures, not_before, last_error } = row
  tx.run(
    `INSERT INTO webhooks (chain, ${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (name, chain) DO UPDATE SET target = excluded.target, state = excluded.state, seen = excluded.seen,
       failing_since = excluded.failing_since, failures = excluded.failures, not_before = excluded.not_before,
       last_error = excluded.last_error, sent = excluded.sent, dropped = excluded.dropped, sent_at = excluded.sent_at`,
    [
      ...[chain, name, target, state, seen, failing_since, failures, not_before, last_error],
      ...[row.sent, row.dropped, row.sent_at],
    ],
  )
}

/** Deletes a webhook that is no longer in orc.yaml. */
export async function forgetWebhook(tx: Tx, chain: string, name: string): Promise<void> {
  await webhookQueue(chain, name).clear(tx)
  tx.run('DELETE FROM webhooks WHERE chain = ? AND name = ?', [chain, name])
}

/** Entries after `from`, without their text. */
export async function nextEntries(
  reader: Reader,
  chain: string,
  from: number,
  limit: number,
): Promise<Pick<AuditRow, 'seq' | 'type' | 'class'>[]> {
  return await reader.all(
    'SELECT seq, type, class FROM audit WHERE chain = ? AND seq > ? ORDER BY seq LIMIT ?',
    [chain, from, limit],
  )
}

export async function lastSeq(reader: Reader, chain: string): Promise<number> {
  const row = await reader.get<{ seq: number }>('SELECT seq FROM audit_heads WHERE chain = ?', [chain])
  return row?.seq ?? 0
}

export async function readEntry(reader: Reader, chain: string, seq: number): Promise<ReadEntry | undefined> {
  const row = await reader.get<AuditRow>('SELECT * FROM audit WHERE chain = ? AND seq = ?', [chain, seq])
  return row === undefined ? undefined : toEntry(row)
}

/** The events that wait for one webhook. */
export function webhookQueue(chain: string, webhook: string) {
  const OF_WEBHOOK = 'webhook = ? AND chain = ?'
  const key = [webhook, chain]

  async function count(reader: Reader): Promise<number> {
    const sql = `SELECT COUNT(*) AS count FROM webhook_queue WHERE ${OF_WEBHOOK}`
    return (await reader.get<{ count: number }>(sql, key))!.count
  }

  return {
    count,
    add(tx: Tx, seq: number): void {
      tx.run(
        'INSERT INTO webhook_queue (webhook, chain, seq) VALUES (?, ?, ?) ON CONFLICT (webhook, chain, seq) DO NOTHING',
        [...key, seq],
      )
    },
    async first(reader: Reader): Promise<QueuedRow | undefined> {
      const sql = `SELECT seq, attempts FROM webhook_queue WHERE ${OF_WEBHOOK} ORDER BY seq LIMIT 1`
      return await reader.get<QueuedRow>(sql, key)
    },
    remove(tx: Tx, seq: number): void {
      tx.run(`DELETE FROM webhook_queue WHERE ${OF_WEBHOOK} AND seq = ?`, [...key, seq])
    },
    countAttempt(tx: Tx, seq: number): void {
      tx.run(`UPDATE webhook_queue SET attempts = attempts + 1 WHERE ${OF_WEBHOOK} AND seq = ?`, [
        ...key,
        seq,
      ])
    },
    /** Deletes the oldest events until `most` are left, and returns how many it deleted. */
    async shorten(tx: Tx, most: number): Promise<number> {
      const over = (await count(tx)) - most
      if (over <= 0) return 0
      tx.run(
        `DELETE FROM webhook_queue WHERE ${OF_WEBHOOK} AND seq IN (
           SELECT seq FROM webhook_queue WHERE ${OF_WEBHOOK} ORDER BY seq LIMIT ?)`,
        [...key, ...key, over],
      )
      return over
    },
    /** Returns how many events it deleted. */
    async clear(tx: Tx): Promise<number> {
      const deleted = await count(tx)
      tx.run(`DELETE FROM webhook_queue WHERE ${OF_WEBHOOK}`, key)
      return deleted
    },
  }
}
