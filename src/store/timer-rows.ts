import { formatId, parseId } from '../base/ids.ts'
import type { Reader, Tx } from './store.ts'

/** Timers are rows, so that they survive a restart (C8). One for each kind and thing; the earlier one stands. */
export interface TimerRow {
  kind: string
  ref: string
  due_at: number
}

export function setTimer(tx: Tx, kind: string, ref: string, dueAt: number): void {
  tx.run(
    `INSERT INTO timers (kind, ref, due_at) VALUES (?, ?, ?)
     ON CONFLICT (kind, ref) DO UPDATE SET due_at = excluded.due_at WHERE excluded.due_at < timers.due_at`,
    [kind, ref, dueAt],
  )
}

/** Sets it to that time, whether it was earlier or later. */
export function moveTimer(tx: Tx, kind: string, ref: string, dueAt: number): void {
  tx.run(
    `INSERT INTO timers (kind, ref, due_at) VALUES (?, ?, ?)
     ON CONFLICT (kind, ref) DO UPDATE SET due_at = excluded.due_at`,
    [kind, ref, dueAt],
  )
}

export function clearTimer(tx: Tx, kind: string, ref: string): void {
  tx.run('DELETE FROM timers WHERE kind = ? AND ref = ?', [kind, ref])
}

export async function nextDue(reader: Reader): Promise<number | undefined> {
  const row = await reader.get<{ due_at: number | null }>(
    `SELECT MIN(due_at) AS due_at FROM (SELECT MIN(due_at) AS due_at FROM timers
       UNION ALL SELECT MIN(due_at) AS due_at FROM tasks WHERE due_at IS NOT NULL) AS due`,
  )
  return row?.due_at ?? undefined
}

/** Of the timers of tasks, which are columns of their rows: what is due, the task itself says. */
export const TASK_TIMER = 'task'

/** Takes what is due. It is gone from the table in the transaction that acts on it, or not at all. */
export async function takeDue(tx: Tx, limit: number): Promise<TimerRow[]> {
  const timers = await tx.all<TimerRow>(
    `SELECT * FROM timers WHERE due_at <= ? ORDER BY due_at LIMIT ? ${tx.skipLocked}`,
    [tx.now, limit],
  )
  const tasks = await tx.all<{ id: number; due_at: number }>(
    `SELECT id, due_at FROM tasks WHERE due_at IS NOT NULL AND due_at <= ? ORDER BY due_at LIMIT ? ${tx.skipLocked}`,
    [tx.now, limit],
  )
  const ofTasks = tasks.map(({ id, due_at }) => ({ kind: TASK_TIMER, ref: formatId('task', id), due_at }))
  const due = [...timers, ...ofTasks].sort((one, other) => one.due_at - other.due_at).slice(0, limit)
  for (const timer of due) {
    if (ofTasks.includes(timer)) clearTaskDue(tx, timer.ref)
    else clearTimer(tx, timer.kind, timer.ref)
  }
  return due
}

function clearTaskDue(tx: Tx, ref: string) {
  tx.run('UPDATE tasks SET due_at = NULL WHERE id = ?', [parseId('task', ref)!])
}
