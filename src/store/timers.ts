import type { Clock } from '../base/clock.ts'
import { formatId, type IdKind } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Reader, Store, Tx } from './store.ts'

/** Handles a due timer, in the transaction that removes its row. */
type OnDue = (tx: Tx, ref: string) => Promise<void>

/**
 * Timers are rows (C8). One alarm is set for the earliest of them, without polling. After a restart, overdue timers fire
 * at once.
 */
export interface Timers {
  /** `column`: the timers of this kind are a column of the room's own table instead of rows of `timers`. */
  on(kind: string, act: OnDue, column?: DueColumn): void
  /** Call after setting a timer: moves the alarm forward if the timer is earlier. */
  setFor(dueAt: number): void
  start(): Promise<void>
  stop(): void
}

/** Maximum delay of setTimeout. A later alarm is set in several steps. */
const LONGEST_ALARM = 2 ** 31 - 1
/** Timers per round, before commands get their turn. */
const BATCH = 256
/** Timers that fire in parallel and share one sync to disk. */
const TOGETHER = 32
/** Wait for timers that another daemon is handling. */
const TAKEN_MS = 50
/** Delay after a failure: long enough not to flood the log, short enough to recover without help. */
const TRY_AGAIN_MS = 5 * 60_000

/** @param isHalted no timer fires while it returns true; `start` sets the alarm again afterwards */
export function createTimers(store: Store, clock: Clock, log: Log, isHalted = () => false): Timers {
  const acts = new Map<string, OnDue>()
  const columns = new Map<string, DueColumn>()
  /** Timers that failed: they are postponed when they are taken next. */
  const failed = new Set<string>()
  let alarm: { at: number; cancel(): void } | undefined
  let stopped = false

  function setFor(dueAt: number) {
    if (stopped || isHalted() || (alarm !== undefined && alarm.at <= dueAt)) return
    alarm?.cancel()
    const wait = Math.min(Math.max(0, dueAt - clock.now()), LONGEST_ALARM)
    alarm = { at: dueAt, cancel: clock.after(wait, () => void ring()) }
  }

  async function ring() {
    alarm = undefined
    try {
      // In small rounds, because a thousand overdue timers after a restart must not block commands. Usually one timer is
      // due; if there are more, the rounds grow.
      let isIdle = true
      for (let count = 0, together = 1; count < BATCH; together = Math.min(2 * together, TOGETHER)) {
        const fired = await Promise.all(Array.from({ length: together }, fireNext))
        if (fired.includes(true)) isIdle = false
        if (fired.includes(false)) break
        count += together
      }
      const next = await nextDue(store, columns.values())
      // Another daemon holds timers that are due but couldn't be taken.
      if (next !== undefined) setFor(isIdle ? Math.max(next, clock.now() + TAKEN_MS) : next)
    } catch (error) {
      if (stopped) return
      log.error({ err: error }, 'could not read the timers; retrying in a second')
      setFor(clock.now() + 1000)
    }
  }

  /** Each timer has its own transaction: a failing timer is postponed and doesn't affect the others. */
  async function fireNext(): Promise<boolean> {
    let taken: TimerRow | undefined
    try {
      await store.write(async (tx) => {
        taken = undefined
        // Checked inside the transaction, where no halt can intervene.
        if (isHalted()) return
        taken = await takeDue(tx, columns)
        if (taken === undefined) return
        const act = acts.get(taken.kind)
        // A kind without a handler belongs to another version: keep the timer.
        if (failed.delete(keyOf(taken)) || act === undefined) {
          setTimer(tx, taken.kind, taken.ref, tx.now + TRY_AGAIN_MS)
        } else await act(tx, taken.ref)
      })
    } catch (error) {
      if (stopped || taken === undefined) throw error
      const { kind, ref } = taken
      // Timers of the same batch may fail with it: log once.
      if (!failed.has(keyOf(taken)))
        log.error({ err: error, timer: kind, ref }, 'a timer failed; it will be retried')
      failed.add(keyOf(taken))
    }
    return taken !== undefined
  }

  return {
    on(kind, act, column) {
      acts.set(kind, act)
      if (column !== undefined) columns.set(kind, column)
    },
    setFor,
    async start() {
      const next = await nextDue(store, columns.values())
      if (next !== undefined) setFor(next)
    },
    stop() {
      stopped = true
      alarm?.cancel()
    },
  }
}

function keyOf({ kind, ref }: TimerRow): string {
  return `${kind} ${ref}`
}

/** Timers are rows, which survive a restart (C8). There is one per kind and ref; setting it again keeps the earlier time. */
export interface TimerRow {
  kind: string
  ref: string
  due_at: number
}

const SET = `INSERT INTO timers (kind, ref, due_at) VALUES (?, ?, ?)
  ON CONFLICT (kind, ref) DO UPDATE SET due_at = excluded.due_at`

export function setTimer(tx: Tx, kind: string, ref: string, dueAt: number): void {
  tx.run(`${SET} WHERE excluded.due_at < timers.due_at`, [kind, ref, dueAt])
}

/** Sets the timer to that time even if it was set to an earlier one. */
export function moveTimer(tx: Tx, kind: string, ref: string, dueAt: number): void {
  tx.run(SET, [kind, ref, dueAt])
}

export function clearTimer(tx: Tx, kind: string, ref: string): void {
  tx.run('DELETE FROM timers WHERE kind = ? AND ref = ?', [kind, ref])
}

/** The column `due_at` of a room's table, which is null while nothing is due; the key of a row is its `id`. */
interface DueColumn {
  table: string
  /** The kind of the ids by which the timers refer to the rows. */
  ids: IdKind
}

export async function nextDue(
  reader: Reader,
  columns: Iterable<DueColumn> = [],
): Promise<number | undefined> {
  const ofColumns = Array.from(
    columns,
    ({ table }) => `UNION ALL SELECT MIN(due_at) AS due_at FROM ${table} WHERE due_at IS NOT NULL`,
  )
  const row = await reader.get<{ due_at: number | null }>(
    `SELECT MIN(due_at) AS due_at FROM (SELECT MIN(due_at) AS due_at FROM timers ${ofColumns.join(' ')}) AS due`,
  )
  return row?.due_at ?? undefined
}

/** Removes and returns the earliest timer that is due, in the transaction that acts on it. */
export async function takeDue(
  tx: Tx,
  columns: ReadonlyMap<string, DueColumn> = new Map(),
): Promise<TimerRow | undefined> {
  let due = await tx.get<TimerRow>(
    `SELECT * FROM timers WHERE due_at <= ? ORDER BY due_at LIMIT 1 ${tx.skipLocked}`,
    [tx.now],
  )
  let clear = () => {
    if (due !== undefined) clearTimer(tx, due.kind, due.ref)
  }
  for (const [kind, { table, ids }] of columns) {
    const row = await tx.get<{ id: number; due_at: number }>(
      `SELECT id, due_at FROM ${table} WHERE due_at IS NOT NULL AND due_at <= ? ORDER BY due_at LIMIT 1 ${tx.skipLocked}`,
      [tx.now],
    )
    if (row === undefined || (due !== undefined && due.due_at <= row.due_at)) continue
    due = { kind, ref: formatId(ids, row.id), due_at: row.due_at }
    clear = () => tx.run(`UPDATE ${table} SET due_at = NULL WHERE id = ?`, [row.id])
  }
  clear()
  return due
}
