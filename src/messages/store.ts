import type { MessageCursor } from '../audit/verify-store.ts'
import { formatId, parseId } from '../base/ids.ts'
import type { Reader, Store } from '../store/store.ts'
import { DELIVERY_STATES, type DeliveryState } from './message.ts'
import { isIntact, type MessageRow } from './messages.ts'

const MAX_PROBLEMS = 20

interface CheckedRow extends MessageRow {
  state: DeliveryState | null
  delivery_priority: number | null
}

/** Checks every message against its digest and its delivery. */
export async function checkMessages(stream: Store['stream']): Promise<string[]> {
  const problems: string[] = []
  const rows = stream<CheckedRow>(
    `SELECT m.*, d.state, d.priority AS delivery_priority FROM messages AS m
       LEFT JOIN deliveries AS d ON d.recipient = m.recipient AND d.message = m.seq ORDER BY m.seq`,
  )
  try {
    for await (const row of rows) {
      const problem = problemOf(row)
      if (problem === undefined) continue
      problems.push(`${formatId('msg', row.seq)} ${problem}`)
      if (problems.length === MAX_PROBLEMS) break
    }
  } catch (error) {
    problems.push((error as Error).message)
  }
  return problems
}

function problemOf(row: CheckedRow): string | undefined {
  if (!isIntact(row)) return 'was changed after it was stored'
  if (row.state === null) return 'has lost its delivery'
  if (!DELIVERY_STATES.includes(row.state) || row.delivery_priority !== row.priority) {
    return 'has a damaged delivery'
  }
  return undefined
}

/** Compares the stored messages with their audit entries, for the verification of the audit. */
export async function openMessageCursor(store: Store): Promise<MessageCursor> {
  const rows = store.stream<MessageRow>('SELECT * FROM messages ORDER BY seq')[Symbol.asyncIterator]()
  // Each daemon on a shared store has its own chain, and messages of other daemons have their entries there.
  const chains = await store.all<{ chain: string }>('SELECT chain FROM audit_heads')
  const isShared = chains.some(({ chain }) => chain !== store.daemon)
  let next = await rows.next()
  let count = 0

  /** Skips messages before that key and returns the first one without an entry, if there is one. */
  async function skipTo(key: number): Promise<string | undefined> {
    while (next.done !== true && next.value.seq < key) {
      const { seq } = next.value
      if (!isShared) return `${formatId('msg', seq)} is in the store, but has no entry in the audit`
      next = await rows.next()
    }
    return undefined
  }

  return {
    async compare(entry, required) {
      const { message_id, digest } = JSON.parse(entry.data) as { message_id?: string; digest?: string }
      const key = parseId('msg', message_id ?? '')
      if (key === undefined) return undefined
      const stray = await skipTo(key)
      if (stray !== undefined) return stray
      if (next.done === true || next.value.seq !== key) {
        return required ? `${message_id} is missing, but entry ${entry.seq} records it` : undefined
      }
      const row = next.value
      next = await rows.next()
      count += 1
      return isIntact(row) && row.digest === digest
        ? undefined
        : `${message_id} is not the message that entry ${entry.seq} records`
    },
    rest: () => skipTo(Number.POSITIVE_INFINITY),
    count: () => count,
    async close() {
      await rows.return?.()
    },
  }
}

export interface Span {
  /** The beginning of the first interval. */
  readonly from: number
  readonly stepMs: number
  readonly steps: number
}

/** Counts audit entries by type in each interval. */
export async function countByStep(
  reader: Reader,
  { from, stepMs, steps }: Span,
): Promise<{ step: number; type: string; count: number }[]> {
  const rows = await reader.all<{ step: number; type: string; count: number }>(
    `SELECT (at - CAST(? AS BIGINT)) / CAST(? AS BIGINT) AS step, type, COUNT(*) AS count FROM audit
     WHERE at >= ? AND at < ? GROUP BY 1, 2`,
    [from, stepMs, from, from + stepMs * steps],
  )
  return rows.map(({ step, type, count }) => ({ step: Number(step), type, count: Number(count) }))
}

/** Sums the cost of each interval. */
export async function costByStep(
  reader: Reader,
  { from, stepMs, steps }: Span,
): Promise<{ step: number; cost: number }[]> {
  const rows = await reader.all<{ step: number; cost: number | null }>(
    `SELECT (at - CAST(? AS BIGINT)) / CAST(? AS BIGINT) AS step, SUM(cost) AS cost FROM spending WHERE at >= ? AND at < ? GROUP BY 1`,
    [from, stepMs, from, from + stepMs * steps],
  )
  return rows.map(({ step, cost }) => ({ step: Number(step), cost: Number(cost ?? 0) }))
}

/** How long the newest messages took to be read, by interval. */
export async function readingTimes(
  reader: Reader,
  { from, stepMs, steps }: Span,
  most: number,
): Promise<{ step: number; ms: number }[]> {
  const rows = await reader.all<{ read_at: number; sent_at: number }>(
    `SELECT d.updated_at AS read_at, m.at AS sent_at FROM messages m
     JOIN deliveries d ON d.message = m.seq AND d.recipient = m.recipient
     WHERE m.at >= ? AND d.state = 'read' ORDER BY m.seq DESC LIMIT ?`,
    [from, most],
  )
  return rows
    .map(({ read_at, sent_at }) => ({
      step: Math.floor((Number(read_at) - from) / stepMs),
      ms: Number(read_at) - Number(sent_at),
    }))
    .filter(({ step }) => step >= 0 && step < steps)
}
