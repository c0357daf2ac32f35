import type { Reader, Tx } from '../../store/store.ts'

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
  const rows = await tx.all<{ key: string }>(
    `INSERT INTO github_actions (key, work, agent, repository, number, action, confidence, rationale, state, request, note,
       not_before, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (key) DO NOTHING RETURNING key`,
    [
      ...[action.key, action.work, action.agent, action.repository, action.number, action.action],
      ...[action.confidence, action.rationale, action.state, action.request, action.note],
      ...[tx.now, tx.now, tx.now],
    ],
  )
  return rows.length === 1
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

export async function changeAction(tx: Tx, key: string, change: ActionChange): Promise<void> {
  await tx.run(
    `UPDATE github_actions SET state = ?, action = COALESCE(?, action), number = COALESCE(?, number),
       request = COALESCE(?, request), url = COALESCE(?, url), note = COALESCE(?, note), not_before = COALESCE(?, not_before),
       attempts = COALESCE(?, attempts), updated_at = ? WHERE key = ?`,
    [
      ...[
        change.state,
        change.action ?? null,
        change.number ?? null,
        change.request ?? null,
        change.url ?? null,
        change.note ?? null,
      ],
      ...[change.notBefore ?? null, change.attempts ?? null, tx.now, key],
    ],
  )
}

export async function linkRequest(tx: Tx, key: string, request: number): Promise<void> {
  await tx.run('UPDATE github_actions SET request = ? WHERE key = ?', [request, key])
}

/** Decided requests whose proposals are still marked as asked, such as after a crash. */
export async function settledQuestions(reader: Reader): Promise<number[]> {
  const rows = await reader.all<{ request: number }>(
    `SELECT a.request FROM github_actions a JOIN human_requests r ON r.id = a.request
      WHERE a.state = 'asked' AND r.state <> 'open' ORDER BY a.request`,
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
