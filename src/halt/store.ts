import type { Reader, Tx } from '../store/store.ts'

/** At most one row: the halt of the team. */
export interface HaltRow {
  halted_by: string
  reason: string | null
  at: number
  /** JSON: agents to tell when the halt ends. */
  agents: string
}

/** A store holds one team. */
const TEAM = 'team'
const COLUMNS = 'halted_by, reason, at, agents'

/** @param lock `tx.lockRow`, to change or end the halt afterwards */
export async function readHalt(reader: Reader, lock = ''): Promise<HaltRow | undefined> {
  return await reader.get<HaltRow>(`SELECT ${COLUMNS} FROM halt WHERE team = ? ${lock}`, [TEAM])
}

/** Stores the halt unless there is one, and returns the one in force. */
export async function storeHaltRow(tx: Tx, halt: HaltRow): Promise<HaltRow> {
  const row = await tx.get<HaltRow>(
    `INSERT INTO halt (team, ${COLUMNS}) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (team) DO UPDATE SET team = excluded.team RETURNING ${COLUMNS}`,
    [TEAM, halt.halted_by, halt.reason, halt.at, halt.agents],
  )
  return row!
}

/** Updates a halt that is in force; one that has ended stays ended. */
export function storeAgentsToNotify(tx: Tx, agents: string): void {
  tx.run('UPDATE halt SET agents = ? WHERE team = ?', [agents, TEAM])
}

export function endHalt(tx: Tx): void {
  tx.run('DELETE FROM halt WHERE team = ?', [TEAM])
}

/** Every timer and request continues with the time it had left. */
export function postponeClocks(tx: Tx, ms: number): void {
  tx.run('UPDATE timers SET due_at = due_at + ?', [ms])
  tx.run(`UPDATE human_requests SET expires_at = expires_at + ? WHERE state = 'open'`, [ms])
}
