import type { Reader } from '../../store/store.ts'

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
