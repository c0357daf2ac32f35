import type { DeclaredStatus, SessionState } from '../base/agent.ts'
import type { Reader, Tx } from '../store/store.ts'

interface AgentRow {
  name: string
  session_state: SessionState
  /** 1 while it is in a turn: working, or waiting at a dialog. */
  in_turn: number
  declared_status: DeclaredStatus | null
  current_task: string | null
  paused: number
  registered_at: number
  updated_at: number
  owner: string | null
}

/** Inserts a row for a new agent. An existing row stays as it is. */
export function registerAgent(tx: Tx, name: string, state: SessionState): void {
  tx.run(
    `INSERT INTO agents (name, session_state, registered_at, updated_at) VALUES (?, ?, ?, ?)
     ON CONFLICT (name) DO NOTHING`,
    [name, state, tx.now, tx.now],
  )
}

export async function readAgents(reader: Reader): Promise<AgentRow[]> {
  return await reader.all<AgentRow>('SELECT * FROM agents ORDER BY name')
}

export async function readAgent(reader: Reader, name: string): Promise<AgentRow | undefined> {
  return await reader.get<AgentRow>('SELECT * FROM agents WHERE name = ?', [name])
}

export function declareStatus(tx: Tx, agent: string, status: DeclaredStatus, task: string | null): void {
  tx.run('UPDATE agents SET declared_status = ?, current_task = ?, updated_at = ? WHERE name = ?', [
    status,
    task,
    tx.now,
    agent,
  ])
}

/** Omitting `isInTurn` keeps the stored value: a process found after a restart is still in its turn. */
export function setSession(tx: Tx, agent: string, state: SessionState, isInTurn?: boolean): void {
  const inTurn = isInTurn === undefined ? null : Number(isInTurn)
  tx.run(
    'UPDATE agents SET session_state = ?, in_turn = COALESCE(?, in_turn), updated_at = ? WHERE name = ?',
    [state, inTurn, tx.now, agent],
  )
}

export function setPaused(tx: Tx, agent: string, paused: boolean): void {
  tx.run('UPDATE agents SET paused = ?, updated_at = ? WHERE name = ?', [paused ? 1 : 0, tx.now, agent])
}

/** An agent's session, as it survives restarts of the service. */
export interface SessionRow {
  agent: string
  /** Marks the agent's commands when they are read off a terminal. */
  nonce: string
  /** State saved by the runtime, as JSON: how to reattach to the session or resume its conversation. */
  kept: string | null
  /** Key of the token that its process holds. */
  token: number | null
  /** 1 while it should be running; such an agent is started again with the service. */
  wanted: number
  /** Amount it had spent when a person last let it continue. */
  granted: number
}

export async function readSession(reader: Reader, agent: string): Promise<SessionRow | undefined> {
  return await reader.get<SessionRow>('SELECT * FROM sessions WHERE agent = ?', [agent])
}

export async function readSessions(reader: Reader): Promise<SessionRow[]> {
  return await reader.all<SessionRow>('SELECT * FROM sessions ORDER BY agent')
}

/** Starts a new conversation. Only the amount spent carries over from the earlier one. */
export function beginSession(tx: Tx, agent: string, nonce: string): void {
  tx.run(
    `INSERT INTO sessions (agent, nonce, wanted, updated_at) VALUES (?, ?, 1, ?)
     ON CONFLICT (agent) DO UPDATE SET nonce = excluded.nonce, kept = NULL, wanted = 1, updated_at = excluded.updated_at`,
    [agent, nonce, tx.now],
  )
}

export function changeSession(
  tx: Tx,
  agent: string,
  changes: Partial<Pick<SessionRow, 'kept' | 'token' | 'wanted' | 'granted'>>,
): void {
  const columns = Object.keys(changes).map((column) => `${column} = ?`)
  tx.run(`UPDATE sessions SET ${columns.join(', ')}, updated_at = ? WHERE agent = ?`, [
    ...Object.values(changes),
    tx.now,
    agent,
  ])
}

/** Context usage of an agent (C26). */
export interface UsageRow {
  agent: string
  model: string | null
  context_tokens: number | null
  context_window: number | null
  lines: number | null
  bytes: number | null
  updated_at: number
}

interface SpendingRow {
  key: string
  model: string | null
  input: number
  output: number
  cacheRead: number
  cacheWrite: number
  /** Undefined if the model has no price. */
  cost: number | undefined
  /** The task it was spent on, if known. */
  task: number | null
}

export interface SpentTotals {
  answers: number
  input: number
  output: number
  cache_read: number
  cache_write: number
  cost: number
  /** Responses of models without a price. */
  unpriced: number
}

export function writeUsage(tx: Tx, row: Omit<UsageRow, 'updated_at'>): void {
  tx.run(
    `INSERT INTO usage (agent, model, context_tokens, context_window, lines, bytes, updated_at)
     VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (agent) DO UPDATE SET model = COALESCE(excluded.model, usage.model),
       context_tokens = COALESCE(excluded.context_tokens, usage.context_tokens),
       context_window = COALESCE(excluded.context_window, usage.context_window),
       lines = COALESCE(excluded.lines, usage.lines), bytes = COALESCE(excluded.bytes, usage.bytes),
       updated_at = excluded.updated_at`,
    [row.agent, row.model, row.context_tokens, row.context_window, row.lines, row.bytes, tx.now],
  )
}

export function clearUsage(tx: Tx, agent: string): void {
  tx.run('DELETE FROM usage WHERE agent = ?', [agent])
}

export async function readAllUsage(reader: Reader): Promise<UsageRow[]> {
  return await reader.all<UsageRow>('SELECT * FROM usage')
}

/** Counts each response of a model once, however often its record is read. Returns false for a duplicate. */
export async function addSpending(tx: Tx, agent: string, spent: SpendingRow): Promise<boolean> {
  const rows = await tx.all(
    `INSERT INTO spending (agent, key, model, input, output, cache_read, cache_write, cost, at, task)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (agent, key) DO NOTHING RETURNING key`,
    [
      agent,
      spent.key,
      spent.model,
      spent.input,
      spent.output,
      spent.cacheRead,
      spent.cacheWrite,
      spent.cost ?? null,
      tx.now,
      spent.task,
    ],
  )
  return rows.length === 1
}

export function attributeSpending(tx: Tx, agent: string, keys: readonly string[], task: number): void {
  const list = keys.map(() => '?').join(', ')
  tx.run(`UPDATE spending SET task = ? WHERE agent = ? AND key IN (${list})`, [task, agent, ...keys])
}

const SUMS = `COUNT(*) AS answers, CAST(SUM(input) AS BIGINT) AS input,
  CAST(SUM(output) AS BIGINT) AS output, CAST(SUM(cache_read) AS BIGINT) AS cache_read,
  CAST(SUM(cache_write) AS BIGINT) AS cache_write, COALESCE(SUM(cost), 0) AS cost,
  COUNT(*) - COUNT(cost) AS unpriced`

export async function readSpent(reader: Reader): Promise<(SpentTotals & { agent: string })[]> {
  return await reader.all(`SELECT agent, ${SUMS} FROM spending GROUP BY agent`)
}

/** Totals per task, without tasks that cost nothing. `keys` must be sorted. */
export async function spentOnTasks(
  reader: Reader,
  keys: readonly number[],
): Promise<(SpentTotals & { task: number })[]> {
  const [first, last] = [keys[0], keys.at(-1)]
  if (first === undefined || last === undefined) return []
  const wanted = new Set(keys)
  const rows = await reader.all<SpentTotals & { task: number }>(
    `SELECT task, ${SUMS} FROM spending WHERE task IS NOT NULL AND task BETWEEN ? AND ? GROUP BY task`,
    [first, last],
  )
  return rows.filter(({ task }) => wanted.has(task))
}

/** Totals of one task per spender: agents, and the service itself. */
export async function spentOnTask(reader: Reader, key: number): Promise<(SpentTotals & { agent: string })[]> {
  return await reader.all(
    `SELECT agent, ${SUMS} FROM spending WHERE task = ? GROUP BY agent ORDER BY agent`,
    [key],
  )
}
