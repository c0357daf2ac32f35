import type { Reader, Tx } from '../store/store.ts'

/** There is at most one row: a team is halted or it is not. */
export interface HaltRow {
  halted_by: string
  reason: string | null
  at: number
  /** JSON: whom the halt disturbed, to be told when it is over. */
  agents: string
}

/** A store holds one team. */
const TEAM = 'team'

export async function readHalt(reader: Reader): Promise<HaltRow | undefined> {
  return await reader.get<HaltRow>('SELECT halted_by, reason, at, agents FROM halt WHERE team = ?', [TEAM])
}

/** The same for whoever is going to change or end it. */
export async function lockHalt(tx: Tx): Promise<HaltRow | undefined> {
  return await tx.get<HaltRow>(
    `SELECT halted_by, reason, at, agents FROM halt WHERE team = ? ${tx.lockRow}`,
    [TEAM],
  )
}

/** Gives the halt that stands: this one, or the one that was there before it. */
export async function keepHalt(tx: Tx, halt: HaltRow): Promise<HaltRow> {
  const row = await tx.get<HaltRow>(
    `INSERT INTO halt (team, halted_by, reason, at, agents) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (team) DO UPDATE SET team = excluded.team RETURNING halted_by, reason, at, agents`,
    [TEAM, halt.halted_by, halt.reason, halt.at, halt.agents],
  )
  return row!
}

/** Of a halt that is there: one that has ended is not brought back by it. */
export async function keepDisturbed(tx: Tx, agents: string): Promise<void> {
  await tx.run('UPDATE halt SET agents = ? WHERE team = ?', [agents, TEAM])
}

export async function endHalt(tx: Tx): Promise<void> {
  await tx.run('DELETE FROM halt WHERE team = ?', [TEAM])
}

/** Every clock that is a row goes on with the time it had left. */
export async function postponeClocks(tx: Tx, ms: number): Promise<void> {
  await tx.run('UPDATE timers SET due_at = due_at + ?', [ms])
  await tx.run(`UPDATE human_requests SET expires_at = expires_at + ? WHERE state = 'open'`, [ms])
}
