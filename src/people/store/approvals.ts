import type { Reader, Tx } from '../../store/store.ts'

/** One person's yes to one action, and to no other: the hash says which. */
export interface ApprovalRow {
  request: number
  person: string
  action_hash: string
  comment: string | null
  at: number
}

/** False if that person approved that action before: the same person counts once. */
export async function insertApproval(tx: Tx, approval: Omit<ApprovalRow, 'at'>): Promise<boolean> {
  const rows = await tx.all<{ request: number }>(
    `INSERT INTO approvals (request, person, action_hash, comment, at) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (request, person, action_hash) DO NOTHING RETURNING request`,
    [approval.request, approval.person, approval.action_hash, approval.comment, tx.now],
  )
  return rows.length === 1
}

/** Of these requests, oldest first; those of an action that was changed since as well. */
export async function readApprovals(reader: Reader, requests: readonly number[]): Promise<ApprovalRow[]> {
  if (requests.length === 0) return []
  const places = requests.map(() => '?').join(', ')
  return await reader.all<ApprovalRow>(
    `SELECT * FROM approvals WHERE request IN (${places}) ORDER BY request, at, person`,
    [...requests],
  )
}

/** What was approved is not what stands there now; who had approved it is in the audit. */
export async function forgetApprovals(tx: Tx, request: number): Promise<void> {
  await tx.run('DELETE FROM approvals WHERE request = ?', [request])
}
