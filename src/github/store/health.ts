import type { Reader, Tx } from '../../store/store.ts'

/** The agent's consecutive failures. */
export async function readFailureStreak(
  reader: Reader,
  agent: string,
): Promise<{ failures: number; halted: boolean }> {
  const row = await reader.get<{ failures: number; halted_at: number | null }>(
    'SELECT failures, halted_at FROM github_standing WHERE agent = ?',
    [agent],
  )
  return { failures: row?.failures ?? 0, halted: (row?.halted_at ?? null) !== null }
}

export async function storeFailureStreak(
  tx: Tx,
  agent: string,
  { failures, halted }: { failures: number; halted: boolean },
): Promise<void> {
  await tx.run(
    `INSERT INTO github_standing (agent, failures, halted_at) VALUES (?, ?, ?)
     ON CONFLICT (agent) DO UPDATE SET failures = excluded.failures,
       halted_at = CASE WHEN excluded.halted_at IS NULL THEN NULL ELSE COALESCE(github_standing.halted_at, excluded.halted_at) END`,
    [agent, failures, halted ? tx.now : null],
  )
}

/** Agents halted after too many consecutive failures. */
export async function readHalted(
  reader: Reader,
): Promise<{ agent: string; failures: number; halted_at: number }[]> {
  return await reader.all<{ agent: string; failures: number; halted_at: number }>(
    'SELECT agent, failures, halted_at FROM github_standing WHERE halted_at IS NOT NULL ORDER BY agent',
  )
}

interface WorkFigures {
  agent: string
  /** Ended since that time. */
  done: number
  failed: number
  average_ms: number | null
}

export async function readWorkFigures(reader: Reader, since: number): Promise<WorkFigures[]> {
  return await reader.all<WorkFigures>(
    `SELECT agent, SUM(CASE WHEN state = 'done' THEN 1 ELSE 0 END) AS done,
       SUM(CASE WHEN state = 'failed' THEN 1 ELSE 0 END) AS failed, AVG(ended_at - created_at) AS average_ms
      FROM github_work WHERE ended_at > ? AND state IN ('done', 'failed') GROUP BY agent`,
    [since],
  )
}

/** When the agent last completed a task. */
export async function lastDoneAt(reader: Reader, agent: string): Promise<number | undefined> {
  const row = await reader.get<{ at: number | null }>(
    `SELECT MAX(ended_at) AS at FROM github_work WHERE agent = ? AND state = 'done'`,
    [agent],
  )
  return row?.at ?? undefined
}

/** The average confidence of proposals since that time. */
export async function readConfidences(
  reader: Reader,
  since: number,
): Promise<{ agent: string; average: number }[]> {
  return await reader.all(
    `SELECT agent, AVG(confidence) AS average FROM github_actions
      WHERE created_at > ? AND confidence IS NOT NULL GROUP BY agent`,
    [since],
  )
}

/** The number of open tasks that were delegated before that time. */
export async function readOverdue(
  reader: Reader,
  before: number,
): Promise<{ agent: string; count: number }[]> {
  return await reader.all(
    `SELECT agent, COUNT(*) AS count FROM github_work WHERE ended_at IS NULL AND task IS NOT NULL AND created_at < ?
      GROUP BY agent`,
    [before],
  )
}

export async function countWaiting(reader: Reader): Promise<{ events: number; actions: number }> {
  const row = await reader.get<{ events: number; actions: number }>(
    `SELECT (SELECT COUNT(*) FROM github_deliveries WHERE state = 'waiting') AS events,
       (SELECT COUNT(*) FROM github_actions WHERE state IN ('ready', 'acting')) AS actions`,
  )
  return row ?? { events: 0, actions: 0 }
}

/** The last recorded status of each agent since that time. */
export async function lastRecordedHealth(
  reader: Reader,
  since: number,
): Promise<{ agent: string; status: 'healthy' | 'degraded' | 'error' }[]> {
  const rows = await reader.all<{ actor: string; data: string }>(
    `SELECT actor, data FROM audit WHERE at >= ? AND type = 'github.health' ORDER BY seq DESC LIMIT 500`,
    [since],
  )
  const latest = new Map<string, 'healthy' | 'degraded' | 'error'>()
  for (const { actor, data } of rows) {
    const { status } = JSON.parse(data) as { status?: unknown }
    const is = status === 'degraded' || status === 'error' ? status : 'healthy'
    if (!latest.has(actor)) latest.set(actor, is)
  }
  return [...latest].map(([agent, status]) => ({ agent, status }))
}
