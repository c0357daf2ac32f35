import type { TaskTimer } from '../model/task.ts'
import type { Store, Tx } from '../store/store.ts'
import { nextDue, postponeTimer, type TimerRow, takeDue } from '../store/timers.ts'
import type { Clock, Log } from './surroundings.ts'

export type TimerKind = 'redeliver' | 'expire_request' | 'unpark' | 'stop_idle' | `task_${TaskTimer}`

/** What happens when a timer of that kind is due, in the transaction that takes it off the table. */
export type OnDue = (tx: Tx, ref: string) => Promise<void>

/**
 * Timers are rows (C8): one alarm is set for the earliest of them, and nothing is polled. After a restart the
 * overdue ones fire at once.
 */
export interface Timers {
  on(kind: TimerKind, act: OnDue): void
  /** Tells that a timer was set for that time; the alarm is moved forward if need be. */
  setFor(dueAt: number): void
  start(): Promise<void>
  stop(): void
}

/** setTimeout's longest. A later alarm is set in several steps. */
const LONGEST_ALARM = 2 ** 31 - 1
const BATCH = 200
/** For a timer whose work failed: long enough not to fill the log, short enough to recover by itself. */
const TRY_AGAIN_MS = 5 * 60_000

export function createTimers(store: Store, clock: Clock, log: Log): Timers {
  const acts = new Map<string, OnDue>()
  let alarm: { at: number; cancel(): void } | undefined
  let stopped = false

  function setFor(dueAt: number) {
    if (stopped || (alarm !== undefined && alarm.at <= dueAt)) return
    alarm?.cancel()
    const wait = Math.min(Math.max(0, dueAt - clock.now()), LONGEST_ALARM)
    alarm = { at: dueAt, cancel: clock.after(wait, () => void ring()) }
  }

  async function ring() {
    alarm = undefined
    try {
      // A few at a time, so that a thousand overdue ones after a restart don't keep the commands waiting.
      for (let count = 0; count < BATCH; count++) if (!(await fireNext())) break
      const next = await nextDue(store)
      if (next !== undefined) setFor(next)
    } catch (error) {
      if (stopped) return
      log.error({ err: error }, 'timers could not be taken; trying again in a second')
      setFor(clock.now() + 1000)
    }
  }

  /** Each in a transaction of its own: one that fails is put off, and keeps no other from firing. */
  async function fireNext(): Promise<boolean> {
    let taken: TimerRow | undefined
    try {
      await store.write(async (tx) => {
        taken = (await takeDue(tx, 1))[0]
        if (taken !== undefined) await acts.get(taken.kind)?.(tx, taken.ref)
      })
    } catch (error) {
      const failed = taken
      if (stopped || failed === undefined) throw error
      log.error(
        { err: error, timer: failed.kind, ref: failed.ref },
        'a timer failed; it is tried again later',
      )
      await store.write((tx) => postponeTimer(tx, failed.kind, failed.ref, tx.now + TRY_AGAIN_MS))
    }
    return taken !== undefined
  }

  return {
    on: (kind, act) => void acts.set(kind, act),
    setFor,
    async start() {
      const next = await nextDue(store)
      if (next !== undefined) setFor(next)
    },
    stop() {
      stopped = true
      alarm?.cancel()
    },
  }
}
