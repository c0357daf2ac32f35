import type { Reader, Tx } from '../../store/store.ts'

/** One person's approval of one action, identified by its hash. */
export interface ApprovalRow {
  request: number
  person: string
  action_hash: string
  comment: string | null
  at: number
}

/** Returns false if that person has approved that action before: each person counts once. */
export async function insertApproval(tx: Tx, approval: Omit<ApprovalRow, 'at'>): Promise<boolean> {
  const rows = await tx.all<{ request: number }>(
    `INSERT INTO approvals (request, person, action_hash, comment, at) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (request, person, action_hash) DO NOTHING RETURNING request`,
    [approval.request, approval.person, approval.action_hash, approval.comment, tx.now],
  )
  return rows.length === 1
}

/** Approvals of these requests, oldest first, including those of actions that were changed since. */
export async function readApprovals(reader: Reader, requests: readonly number[]): Promise<ApprovalRow[]> {
  if (requests.length === 0) return []
  const places = requests.map(() => '?').join(', ')
  return await reader.all<ApprovalRow>(
    `SELECT * FROM approvals WHERE request IN (${places}) ORDER BY request, at, person`,
    [...requests],
  )
}

/** Deletes approvals of an action that was changed; the audit keeps them. */
export async function forgetApprovals(tx: Tx, request: number): Promise<void> {
  await tx.run('DELETE FROM approvals WHERE request = ?', [request])
}
