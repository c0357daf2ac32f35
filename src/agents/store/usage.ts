import type { Reader, Tx } from '../../store/store.ts'

/** How full an agent's context is (C26). */
export interface UsageRow {
  agent: string
  model: string | null
  context_tokens: number | null
  context_window: number | null
  lines: number | null
  bytes: number | null
  updated_at: number
}

export interface Spending {
  key: string
  model: string | null
  input: number
  output: number
  cacheRead: number
  cacheWrite: number
  /** Undefined where no price is known. */
  cost: number | undefined
  /** The task that it was for, where that is known. */
  task: number | null
}

export interface Spent {
  answers: number
  input: number
  output: number
  cache_read: number
  cache_write: number
  cost: number
  /** Answers of models without a price. */
  unpriced: number
}

export async function writeUsage(tx: Tx, row: Omit<UsageRow, 'updated_at'>): Promise<void> {
  await tx.run(
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

/** A new conversation starts empty. */
export async function clearUsage(tx: Tx, agent: string): Promise<void> {
  await tx.run('DELETE FROM usage WHERE agent = ?', [agent])
}

export async function readAllUsage(reader: Reader): Promise<UsageRow[]> {
  return await reader.all<UsageRow>('SELECT * FROM usage')
}

/** One answer of a model counts once, however often its record is read. False if it was there. */
export async function addSpending(tx: Tx, agent: string, spent: Spending): Promise<boolean> {
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

export async function attributeSpending(
  tx: Tx,
  agent: string,
  keys: readonly string[],
  task: number,
): Promise<void> {
  const list = keys.map(() => '?').join(', ')
  await tx.run(`UPDATE spending SET task = ? WHERE agent = ? AND key IN (${list})`, [task, agent, ...keys])
}

const SUMS = `COUNT(*) AS answers, CAST(SUM(input) AS BIGINT) AS input,
  CAST(SUM(output) AS BIGINT) AS output, CAST(SUM(cache_read) AS BIGINT) AS cache_read,
  CAST(SUM(cache_write) AS BIGINT) AS cache_write, COALESCE(SUM(cost), 0) AS cost,
  COUNT(*) - COUNT(cost) AS unpriced`

export async function readSpent(reader: Reader): Promise<(Spent & { agent: string })[]> {
  return await reader.all(`SELECT agent, ${SUMS} FROM spending GROUP BY agent`)
}

/** What was spent on tasks, for those on which something was. The keys are given in their order. */
export async function spentOnTasks(
  reader: Reader,
  keys: readonly number[],
): Promise<(Spent & { task: number })[]> {
  const [first, last] = [keys[0], keys.at(-1)]
  if (first === undefined || last === undefined) return []
  const wanted = new Set(keys)
  const rows = await reader.all<Spent & { task: number }>(
    `SELECT task, ${SUMS} FROM spending WHERE task IS NOT NULL AND task BETWEEN ? AND ? GROUP BY task`,
    [first, last],
  )
  return rows.filter(({ task }) => wanted.has(task))
}

/** The same by who spent it: agents, and the service itself. */
export async function spentOnTask(reader: Reader, key: number): Promise<(Spent & { agent: string })[]> {
  return await reader.all(
    `SELECT agent, ${SUMS} FROM spending WHERE task = ? GROUP BY agent ORDER BY agent`,
    [key],
  )
}
