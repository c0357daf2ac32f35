/** SQL of deliveries (webhooks), work (one agent for one event), actions (one proposal each), conduct flags and failures. */
import { hash } from 'node:crypto'
import type { Reader, SqlValue, Tx } from '../store/store.ts'
import type { FailureStreak } from './core/policy.ts'

/** Runs a statement with RETURNING; false if it changed nothing. */
async function changesRow(tx: Tx, sql: string, params: readonly SqlValue[]): Promise<boolean> {
  return (await tx.get(sql, params)) !== undefined
}

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
  return await changesRow(
    tx,
    `INSERT INTO github_deliveries (id, event, payload, state, not_before, received_at) VALUES (?, ?, ?, 'waiting', ?, ?)
     ON CONFLICT (id) DO NOTHING RETURNING id`,
    [id, event, payload, tx.now, tx.now],
  )
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
  return await changesRow(
    tx,
    `UPDATE github_deliveries SET state = ?, note = ?, payload = '' WHERE id = ? AND state = 'waiting' RETURNING id`,
    [state, note, id],
  )
}

interface QueueState {
  /** The time of the last webhook or scheduled trigger. */
  newest: number | null
  events: number
  actions: number
}

/** The last event, and how many events and actions are waiting. */
export async function readQueues(reader: Reader): Promise<QueueState> {
  const row = await reader.get<QueueState>(
    `SELECT (SELECT MAX(received_at) FROM github_deliveries) AS newest,
            (SELECT COUNT(*) FROM github_deliveries WHERE state = 'waiting') AS events,
            (SELECT COUNT(*) FROM github_actions WHERE state IN ('ready', 'acting')) AS actions`,
  )
  return row!
}

export function putOffDelivery(tx: Tx, id: string, until: number, note: string): void {
  tx.run(
    `UPDATE github_deliveries SET attempts = attempts + 1, not_before = ?, note = ? WHERE id = ? AND state = 'waiting'`,
    [until, note, id],
  )
}

/** The first start of the service, or the first webhook of older stores that don't know it. */
export async function takenSince(tx: Tx): Promise<number> {
  tx.run(
    `INSERT INTO github_since (id, at) SELECT 1, COALESCE(MIN(received_at), ?) FROM github_deliveries WHERE true
     ON CONFLICT (id) DO NOTHING`,
    [tx.now],
  )
  return (await tx.get<{ at: number }>('SELECT at FROM github_since WHERE id = 1'))!.at
}

/** A delivery without its payload. */
interface DeliveryOutline {
  id: string
  event: string
  state: string
  note: string | null
  received_at: number
}

const DELIVERY_OUTLINE = 'id, event, state, note, received_at'

export async function readDelivery(reader: Reader, id: string): Promise<DeliveryOutline | undefined> {
  return await reader.get<DeliveryOutline>(`SELECT ${DELIVERY_OUTLINE} FROM github_deliveries WHERE id = ?`, [
    id,
  ])
}

/** Newest first. */
export async function readDeliveries(reader: Reader, limit: number): Promise<DeliveryOutline[]> {
  return await reader.all<DeliveryOutline>(
    `SELECT ${DELIVERY_OUTLINE} FROM github_deliveries ORDER BY received_at DESC, id LIMIT ?`,
    [limit],
  )
}

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

const WORK_OUTLINE = 'id, delivery, role, agent, repository, number, state, task, after, needs, attempts'
const WORK = `${WORK_OUTLINE}, delegation`

export function insertWork(tx: Tx, work: GithubWork): void {
  tx.run(`INSERT INTO github_work (${WORK}, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, [
    ...[work.id, work.delivery, work.role, work.agent, work.repository, work.number, work.state, work.task],
    ...[work.after, work.needs, work.attempts, work.delegation, tx.now],
  ])
}

export function beginWork(tx: Tx, id: string, task: number): void {
  tx.run(`UPDATE github_work SET state = 'delegated', task = ? WHERE id = ?`, [task, id])
}

/** False if the work has already ended, so that an outcome counts once. */
export async function endWork(tx: Tx, id: string, state: 'done' | 'failed' | 'skipped'): Promise<boolean> {
  return await changesRow(
    tx,
    'UPDATE github_work SET state = ?, ended_at = ? WHERE id = ? AND ended_at IS NULL RETURNING id',
    [state, tx.now, id],
  )
}

/** Resets the work for a retry. False if it has ended. */
export async function putOffWork(tx: Tx, id: string): Promise<boolean> {
  return await changesRow(
    tx,
    `UPDATE github_work SET state = 'waiting', task = NULL, attempts = attempts + 1
      WHERE id = ? AND ended_at IS NULL AND task IS NOT NULL RETURNING id`,
    [id],
  )
}

export async function findWork(reader: Reader, id: string): Promise<GithubWork | undefined> {
  return await reader.get<GithubWork>(`SELECT ${WORK} FROM github_work WHERE id = ?`, [id])
}

export async function workOfTask(reader: Reader, task: number): Promise<GithubWork | undefined> {
  return await reader.get<GithubWork>(`SELECT ${WORK} FROM github_work WHERE task = ?`, [task])
}

/** Delegated work that has not ended, oldest first; of one agent, if it is given. */
export async function openWork(reader: Reader, agent?: string): Promise<GithubWork[]> {
  const only = agent === undefined ? '' : 'AND agent = ?'
  return await reader.all<GithubWork>(
    `SELECT ${WORK} FROM github_work WHERE ended_at IS NULL AND task IS NOT NULL ${only} ORDER BY created_at, id`,
    agent === undefined ? [] : [agent],
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
    `SELECT ${WORK_OUTLINE} FROM github_work WHERE delivery IN (${deliveries.map(() => '?').join(', ')}) ORDER BY created_at, id`,
    deliveries,
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

/** A proposed action. */
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
  /** `asked`: people decide. `ready`: queued. `acting`: the call was started, maybe before a crash. The others are final. */
  state: 'asked' | 'ready' | 'acting' | 'done' | 'failed' | 'stale' | 'refused' | 'dry'
  request: number | null
  attempts: number
  url: string | null
  note: string | null
  created_at: number
}

const ACTION =
  'key, work, agent, repository, number, action, confidence, rationale, state, request, attempts, url, note, created_at'

/** False if the same action was proposed before. */
export async function insertAction(
  tx: Tx,
  action: Omit<ActionRow, 'attempts' | 'url' | 'created_at'>,
): Promise<boolean> {
  return await changesRow(
    tx,
    `INSERT INTO github_actions (key, work, agent, repository, number, action, confidence, rationale, state, request, note,
       not_before, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (key) DO NOTHING RETURNING key`,
    [
      ...[action.key, action.work, action.agent, action.repository, action.number, action.action],
      ...[action.confidence, action.rationale, action.state, action.request, action.note],
      ...[tx.now, tx.now, tx.now],
    ],
  )
}

export async function findAction(reader: Reader, key: string): Promise<ActionRow | undefined> {
  return await reader.get<ActionRow>(`SELECT ${ACTION} FROM github_actions WHERE key = ?`, [key])
}

export async function nextAction(reader: Reader, now: number): Promise<ActionRow | undefined> {
  return await reader.get<ActionRow>(
    `SELECT ${ACTION} FROM github_actions WHERE state IN ('ready', 'acting') AND not_before <= ?
      ORDER BY not_before, key LIMIT 1`,
    [now],
  )
}

export async function nextActionDue(reader: Reader): Promise<number | undefined> {
  const row = await reader.get<{ due: number | null }>(
    `SELECT MIN(not_before) AS due FROM github_actions WHERE state IN ('ready', 'acting')`,
  )
  return row?.due ?? undefined
}

interface ActionChange {
  state: ActionRow['state']
  action?: string
  /** Set if people moved the action to another thread. */
  number?: number
  request?: number
  url?: string | undefined
  note?: string
  notBefore?: number
  attempts?: number
}

export function changeAction(tx: Tx, key: string, change: ActionChange): void {
  tx.run(
    `UPDATE github_actions SET state = ?, action = COALESCE(?, action), number = COALESCE(?, number),
       request = COALESCE(?, request), url = COALESCE(?, url), note = COALESCE(?, note), not_before = COALESCE(?, not_before),
       attempts = COALESCE(?, attempts), updated_at = ? WHERE key = ?`,
    [
      ...[change.state, change.action ?? null, change.number ?? null, change.request ?? null],
      ...[change.url ?? null, change.note ?? null, change.notBefore ?? null, change.attempts ?? null],
      ...[tx.now, key],
    ],
  )
}

/** The requests of proposals that wait for people. */
export async function requestsOfAskedActions(reader: Reader): Promise<number[]> {
  const rows = await reader.all<{ request: number }>(
    `SELECT request FROM github_actions WHERE state = 'asked' AND request IS NOT NULL ORDER BY request`,
  )
  return rows.map(({ request }) => request)
}

/** All actions that a delivery led to: their `work` starts with its id and a slash. */
export async function actionsOfDelivery(reader: Reader, delivery: string): Promise<ActionRow[]> {
  return await reader.all<ActionRow>(
    `SELECT ${ACTION} FROM github_actions WHERE work >= ? AND work < ? ORDER BY created_at, key`,
    // 0 is the character after the slash.
    [`${delivery}/`, `${delivery}0`],
  )
}

/** Newest first. */
export async function readActions(reader: Reader, limit: number): Promise<ActionRow[]> {
  return await reader.all<ActionRow>(
    `SELECT ${ACTION} FROM github_actions ORDER BY created_at DESC, key LIMIT ?`,
    [limit],
  )
}

/** A flag for moderators. Its id reveals neither the number of flags nor their time. */
interface GithubConduct {
  id: string
  repository: string
  number: number | null
  /** JSON of the protocol. */
  flag: string
  created_at: number
  closed_at: number | null
  closed_by: string | null
  decision: ConductDecision | null
  comment: string | null
}

type ConductDecision = 'upheld' | 'dismissed'

const CONDUCT = 'id, repository, number, flag, created_at, closed_at, closed_by, decision, comment'

/** A repeated flag replaces the earlier one until a moderator has decided. */
export function insertConduct(
  tx: Tx,
  flag: Pick<GithubConduct, 'id' | 'repository' | 'number' | 'flag'>,
): void {
  tx.run(
    `INSERT INTO github_conduct (id, repository, number, flag, created_at) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET flag = excluded.flag WHERE github_conduct.closed_at IS NULL`,
    [flag.id, flag.repository, flag.number, flag.flag, tx.now],
  )
}

export async function readConduct(
  reader: Reader,
  state: 'open' | 'all',
  limit: number,
): Promise<GithubConduct[]> {
  const where = state === 'open' ? 'WHERE closed_at IS NULL' : ''
  return await reader.all<GithubConduct>(
    `SELECT ${CONDUCT} FROM github_conduct ${where} ORDER BY created_at DESC, id LIMIT ?`,
    [limit],
  )
}

export async function closeConduct(
  tx: Tx,
  id: string,
  { by, decision, comment }: { by: string; decision: ConductDecision; comment: string | null },
): Promise<boolean> {
  return await changesRow(
    tx,
    `UPDATE github_conduct SET closed_at = ?, closed_by = ?, decision = ?, comment = ?
      WHERE id = ? AND closed_at IS NULL RETURNING id`,
    [tx.now, by, decision, comment, id],
  )
}

/** Changes when a flag is added, replaced or closed. */
export async function conductVersion(reader: Reader): Promise<string> {
  return hash('sha256', JSON.stringify(await readConduct(reader, 'all', 200)))
}

/** Whether moderators still have to be notified of a flag. */
export async function hasNewConduct(reader: Reader): Promise<boolean> {
  const row = await reader.get(
    'SELECT id FROM github_conduct WHERE told_at IS NULL AND closed_at IS NULL LIMIT 1',
  )
  return row !== undefined
}

/** A single notice covers all flags up to that time. */
export function markConductNotified(tx: Tx, until: number): void {
  tx.run('UPDATE github_conduct SET told_at = ? WHERE told_at IS NULL AND created_at <= ?', [tx.now, until])
}

export async function readFailureStreak(reader: Reader, agent: string): Promise<FailureStreak> {
  const row = await reader.get<{ failures: number; halted_at: number | null }>(
    'SELECT failures, halted_at FROM github_standing WHERE agent = ?',
    [agent],
  )
  return { failures: row?.failures ?? 0, isSuspended: (row?.halted_at ?? null) !== null }
}

export function storeFailureStreak(tx: Tx, agent: string, { failures, isSuspended }: FailureStreak): void {
  tx.run(
    `INSERT INTO github_standing (agent, failures, halted_at) VALUES (?, ?, ?)
     ON CONFLICT (agent) DO UPDATE SET failures = excluded.failures,
       halted_at = CASE WHEN excluded.halted_at IS NULL THEN NULL ELSE COALESCE(github_standing.halted_at, excluded.halted_at) END`,
    [agent, failures, isSuspended ? tx.now : null],
  )
}

/** Agents that get no work after too many failures in a row. */
export async function readSuspended(
  reader: Reader,
): Promise<{ agent: string; failures: number; halted_at: number }[]> {
  return await reader.all(
    'SELECT agent, failures, halted_at FROM github_standing WHERE halted_at IS NOT NULL ORDER BY agent',
  )
}
