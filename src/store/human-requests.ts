import type { HumanRequestKind, HumanRequestState } from '../model/human-request.ts'
import type { Reader, Tx } from './store.ts'

export interface HumanRequestRow {
  id: number
  kind: HumanRequestKind
  /** What a verdict sets in motion: `command` carries the held command out, `go_on` lets a conversation go on as well, `permission` answers an agent program's dialog, `task` goes on with a task, `question` tells the asker, `notice` nothing. */
  purpose: string
  state: HumanRequestState
  asker: string
  question: string
  reason: string
  action: string | null
  action_hash: string | null
  context: string
  created_at: number
  expires_at: number
  decided_at: number | null
  decided_by: string | null
  comment: string | null
}

export type NewHumanRequest = Pick<
  HumanRequestRow,
  'kind' | 'purpose' | 'asker' | 'question' | 'reason' | 'action' | 'action_hash' | 'context' | 'expires_at'
> & {
  /** Where it had to be known before: from `nextKey('req')`, in this transaction. */
  id?: number
}

export async function insertHumanRequest(tx: Tx, request: NewHumanRequest): Promise<number> {
  const id = request.id ?? (await tx.nextKey('req'))
  await tx.run(
    `INSERT INTO human_requests (id, kind, purpose, state, asker, question, reason, action, action_hash, context,
       created_at, expires_at) VALUES (?, ?, ?, 'open', ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      id,
      request.kind,
      request.purpose,
      request.asker,
      request.question,
      request.reason,
      request.action,
      request.action_hash,
      request.context,
      tx.now,
      request.expires_at,
    ],
  )
  return id
}

export async function findHumanRequest(reader: Reader, id: number): Promise<HumanRequestRow | undefined> {
  return await reader.get<HumanRequestRow>('SELECT * FROM human_requests WHERE id = ?', [id])
}

/** The open request of that purpose with exactly this context. */
export async function findOpenRequest(
  reader: Reader,
  purpose: string,
  context: string,
): Promise<HumanRequestRow | undefined> {
  return await reader.get<HumanRequestRow>(
    `SELECT * FROM human_requests WHERE state = 'open' AND purpose = ? AND context = ?`,
    [purpose, context],
  )
}

export async function openRequestsOf(reader: Reader, asker: string): Promise<HumanRequestRow[]> {
  return await reader.all<HumanRequestRow>(
    `SELECT * FROM human_requests WHERE state = 'open' AND asker = ? ORDER BY id`,
    [asker],
  )
}

export async function readHumanRequests(
  reader: Reader,
  state: 'open' | 'all',
  limit: number,
): Promise<HumanRequestRow[]> {
  const where = state === 'open' ? `WHERE state = 'open'` : ''
  const rows = await reader.all<HumanRequestRow>(
    `SELECT * FROM human_requests ${where} ORDER BY id DESC LIMIT ?`,
    [limit],
  )
  return rows.reverse()
}

export async function openPermissions(reader: Reader, asker: string): Promise<HumanRequestRow[]> {
  return await reader.all<HumanRequestRow>(
    `SELECT * FROM human_requests WHERE state = 'open' AND purpose = 'permission' AND asker = ? ORDER BY id`,
    [asker],
  )
}

export async function openNotices(
  reader: Reader,
  asker: string,
  context: string,
): Promise<HumanRequestRow[]> {
  return await reader.all<HumanRequestRow>(
    `SELECT * FROM human_requests WHERE state = 'open' AND purpose = 'notice' AND asker = ? AND context = ?`,
    [asker, context],
  )
}

export async function countOpenRequests(reader: Reader): Promise<number> {
  const row = await reader.get<{ count: number }>(
    `SELECT COUNT(*) AS count FROM human_requests WHERE state = 'open'`,
  )
  return row?.count ?? 0
}

/** Closes an open request; false if someone else did so before. A verdict is thus used once. */
export async function decideHumanRequest(
  tx: Tx,
  id: number,
  verdict: { state: Exclude<HumanRequestState, 'open'>; by: string; comment: string | null },
): Promise<boolean> {
  const rows = await tx.all<{ id: number }>(
    `UPDATE human_requests SET state = ?, decided_at = ?, decided_by = ?, comment = ?
      WHERE id = ? AND state = 'open' RETURNING id`,
    [verdict.state, tx.now, verdict.by, verdict.comment, id],
  )
  return rows.length === 1
}
