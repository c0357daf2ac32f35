import type { Reader, Tx } from './store.ts'

/** Timers are rows, so that they survive a restart (C8). One for each kind and thing; the earlier one stands. */
export interface TimerRow {
  kind: string
  ref: string
  due_at: number
}

export async function setTimer(tx: Tx, kind: string, ref: string, dueAt: number): Promise<void> {
  await tx.run(
    `INSERT INTO timers (kind, ref, due_at) VALUES (?, ?, ?)
     ON CONFLICT (kind, ref) DO UPDATE SET due_at = excluded.due_at WHERE excluded.due_at < timers.due_at`,
    [kind, ref, dueAt],
  )
}

/** Sets it to that time, whether it was earlier or later. */
export async function moveTimer(tx: Tx, kind: string, ref: string, dueAt: number): Promise<void> {
  await tx.run(
    `INSERT INTO timers (kind, ref, due_at) VALUES (?, ?, ?)
     ON CONFLICT (kind, ref) DO UPDATE SET due_at = excluded.due_at`,
    [kind, ref, dueAt],
  )
}

export async function clearTimer(tx: Tx, kind: string, ref: string): Promise<void> {
  await tx.run('DELETE FROM timers WHERE kind = ? AND ref = ?', [kind, ref])
}

export async function nextDue(reader: Reader): Promise<number | undefined> {
  const row = await reader.get<{ due_at: number | null }>('SELECT MIN(due_at) AS due_at FROM timers')
  return row?.due_at ?? undefined
}

/** Takes what is due. It is gone from the table in the transaction that acts on it, or not at all. */
export async function takeDue(tx: Tx, limit: number): Promise<TimerRow[]> {
  const due = await tx.all<TimerRow>(
    `SELECT * FROM timers WHERE due_at <= ? ORDER BY due_at LIMIT ? ${tx.skipLocked}`,
    [tx.now, limit],
  )
  for (const timer of due) await clearTimer(tx, timer.kind, timer.ref)
  return due
}
