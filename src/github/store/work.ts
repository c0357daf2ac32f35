import type { Reader, Tx } from '../../store/store.ts'

/** The work of one agent for one event. */
export interface GithubWork {
  /** `DELIVERY/ROLE`, so that each role gets an event once. */
  id: string
  delivery: string
  role: string
  agent: string
  repository: string
  number: number | null
  /** `waiting`: for the end of `after`, or for a retry. */
  state: 'waiting' | 'delegated' | 'done' | 'failed' | 'skipped'
  task: number | null
  after: string | null
  /** The outcome of `after` that starts this work. */
  needs: 'success' | 'failure' | 'any'
  delegation: string
  /** The number of retries. */
  attempts: number
}

/** For lists: without the long delegation. */
export type GithubWorkOutline = Omit<GithubWork, 'delegation'>

const WORK = 'id, delivery, role, agent, repository, number, state, task, after, needs, delegation, attempts'
const OUTLINE = 'id, delivery, role, agent, repository, number, state, task, after, needs, attempts'

export async function insertWork(tx: Tx, work: GithubWork): Promise<void> {
  await tx.run(
    `INSERT INTO github_work (${WORK}, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      ...[work.id, work.delivery, work.role, work.agent, work.repository, work.number, work.state, work.task],
      ...[work.after, work.needs, work.delegation, work.attempts, tx.now],
    ],
  )
}

export async function beginWork(tx: Tx, id: string, task: number): Promise<void> {
  await tx.run(`UPDATE github_work SET state = 'delegated', task = ? WHERE id = ?`, [task, id])
}

/** False if the work has already ended, so that an outcome counts once. */
export async function endWork(tx: Tx, id: string, state: 'done' | 'failed' | 'skipped'): Promise<boolean> {
  const rows = await tx.all<{ id: string }>(
    'UPDATE github_work SET state = ?, ended_at = ? WHERE id = ? AND ended_at IS NULL RETURNING id',
    [state, tx.now, id],
  )
  return rows.length === 1
}

/** Resets the work for a retry. False if it has ended. */
export async function putOffWork(tx: Tx, id: string): Promise<boolean> {
  const rows = await tx.all<{ id: string }>(
    `UPDATE github_work SET state = 'waiting', task = NULL, attempts = attempts + 1
      WHERE id = ? AND ended_at IS NULL AND task IS NOT NULL RETURNING id`,
    [id],
  )
  return rows.length === 1
}

export async function findWork(reader: Reader, id: string): Promise<GithubWork | undefined> {
  return await reader.get<GithubWork>(`SELECT ${WORK} FROM github_work WHERE id = ?`, [id])
}

export async function workOfTask(reader: Reader, task: number): Promise<GithubWork | undefined> {
  return await reader.get<GithubWork>(`SELECT ${WORK} FROM github_work WHERE task = ?`, [task])
}

export async function openWork(reader: Reader): Promise<GithubWork[]> {
  return await reader.all<GithubWork>(
    `SELECT ${WORK} FROM github_work WHERE ended_at IS NULL AND task IS NOT NULL ORDER BY id`,
  )
}

export async function workAfter(reader: Reader, delivery: string, role: string): Promise<GithubWork[]> {
  return await reader.all<GithubWork>(
    `SELECT ${WORK} FROM github_work WHERE delivery = ? AND after = ? AND state = 'waiting' ORDER BY id`,
    [delivery, role],
  )
}

/** The work of these deliveries, oldest first. */
export async function workOfDeliveries(
  reader: Reader,
  deliveries: readonly string[],
): Promise<GithubWorkOutline[]> {
  if (deliveries.length === 0) return []
  return await reader.all<GithubWorkOutline>(
    `SELECT ${OUTLINE} FROM github_work WHERE delivery IN (${deliveries.map(() => '?').join(', ')}) ORDER BY created_at, id`,
    deliveries,
  )
}

/** The open work of an agent. */
export async function openWorkOf(reader: Reader, agent: string): Promise<GithubWork[]> {
  return await reader.all<GithubWork>(
    `SELECT ${WORK} FROM github_work WHERE ended_at IS NULL AND task IS NOT NULL AND agent = ? ORDER BY created_at, id`,
    [agent],
  )
}

/** The newest work of an agent, on that thread if a number is given. */
export async function latestWorkAbout(
  reader: Reader,
  agent: string,
  number: number | undefined,
): Promise<GithubWork | undefined> {
  const about = number === undefined ? '' : ' AND number = ?'
  return await reader.get<GithubWork>(
    `SELECT ${WORK} FROM github_work WHERE agent = ?${about} ORDER BY created_at DESC, id LIMIT 1`,
    [agent, ...(number === undefined ? [] : [number])],
  )
}
