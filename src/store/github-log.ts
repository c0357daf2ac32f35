import type { Reader } from './store.ts'

export interface DeliveryRow {
  id: string
  event: string
  state: string
  note: string | null
  received_at: number
}

export interface WorkRow {
  delivery: string
  role: string
  agent: string
  repository: string
  number: number | null
  state: string
  task: number | null
}

export interface ActionRow {
  key: string
  work: string
  agent: string
  repository: string
  number: number | null
  /** JSON. */
  action: string
  confidence: number | null
  rationale: string
  state: string
  request: number | null
  url: string | null
  note: string | null
  created_at: number
}

/** The newest events, newest first, and whose work came of them. */
export async function readRecent(
  reader: Reader,
  limit: number,
): Promise<{ deliveries: DeliveryRow[]; work: WorkRow[] }> {
  const deliveries = await reader.all<DeliveryRow>(
    'SELECT id, event, state, note, received_at FROM github_deliveries ORDER BY received_at DESC, id LIMIT ?',
    [limit],
  )
  if (deliveries.length === 0) return { deliveries, work: [] }
  const work = await reader.all<WorkRow>(
    `SELECT delivery, role, agent, repository, number, state, task FROM github_work
      WHERE delivery IN (${deliveries.map(() => '?').join(', ')}) ORDER BY id`,
    deliveries.map(({ id }) => id),
  )
  return { deliveries, work }
}

/** What was proposed, newest first. */
export async function readActions(reader: Reader, limit: number): Promise<ActionRow[]> {
  return await reader.all<ActionRow>(
    `SELECT key, work, agent, repository, number, action, confidence, rationale, state, request, url, note, created_at
      FROM github_actions ORDER BY created_at DESC, key LIMIT ?`,
    [limit],
  )
}

/** Agents that failed too often in a row. */
export async function readHalted(
  reader: Reader,
): Promise<{ agent: string; failures: number; halted_at: number }[]> {
  return await reader.all<{ agent: string; failures: number; halted_at: number }>(
    'SELECT agent, failures, halted_at FROM github_standing WHERE halted_at IS NOT NULL ORDER BY agent',
  )
}
