import { formatId, parseId } from '../base/ids.ts'
import type { Reader, Tx } from './store.ts'

/** Timers are rows, which survive a restart (C8). There is one per kind and ref; setting it again keeps the earlier time. */
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

/** Sets the timer to that time even if it was set to an earlier one. */
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

/** Timers of tasks are a column of the task's row; the task itself knows what is due. */
export const TASK_TIMER = 'task'

/** Removes and returns due timers, in the transaction that acts on them. */
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
