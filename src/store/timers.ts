import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Store, Tx } from './store.ts'
import { nextDue, setTimer, type TASK_TIMER, type TimerRow, takeDue } from './timer-rows.ts'

type TimerKind =
  | 'redeliver'
  | 'expire_request'
  | 'unpark'
  | 'stop_idle'
  | 'github_trigger'
  | 'github_health'
  | 'github_retry'
  | 'run'
  | typeof TASK_TIMER

/** What happens when a timer of that kind is due, in the transaction that takes it off the table. */
type OnDue = (tx: Tx, ref: string) => Promise<void>

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
/** Until commands get their turn. */
const BATCH = 256
/** As many as may share one sync to disk. */
const TOGETHER = 32
/** For timers that another daemon has taken, until it has seen to them. */
const TAKEN_MS = 50
/** For a timer whose work failed: long enough not to fill the log, short enough to recover by itself. */
const TRY_AGAIN_MS = 5 * 60_000

/** `isHalted`: then none acts; `start` sets the alarm again afterwards. */
export function createTimers(store: Store, clock: Clock, log: Log, isHalted = () => false): Timers {
  const acts = new Map<string, OnDue>()
  /** Put off when they are taken next. */
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
      // A few at a time, so that a thousand overdue ones after a restart don't keep the commands waiting. Mostly there is
      // one; where there are more, they join each other.
      let isIdle = true
      for (let count = 0, together = 1; count < BATCH; together = Math.min(2 * together, TOGETHER)) {
        const fired = await Promise.all(Array.from({ length: together }, fireNext))
        if (fired.includes(true)) isIdle = false
        if (fired.includes(false)) break
        count += together
      }
      const next = await nextDue(store)
      // What is due and was not taken is in the hands of another daemon.
      if (next !== undefined) setFor(isIdle ? Math.max(next, clock.now() + TAKEN_MS) : next)
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
        taken = undefined
        // Looked at here, where no halt can come in between.
        if (isHalted()) return
        taken = (await takeDue(tx, 1))[0]
        if (taken === undefined) return
        const act = acts.get(taken.kind)
        // One that nobody here knows is of another version: it is not lost for that.
        if (failed.delete(keyOf(taken)) || act === undefined) {
          setTimer(tx, taken.kind, taken.ref, tx.now + TRY_AGAIN_MS)
        } else await act(tx, taken.ref)
      })
    } catch (error) {
      if (stopped || taken === undefined) throw error
      const { kind, ref } = taken
      // Those beside it may have met it as well.
      if (!failed.has(keyOf(taken)))
        log.error({ err: error, timer: kind, ref }, 'a timer failed; it is tried again later')
      failed.add(keyOf(taken))
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

function keyOf({ kind, ref }: TimerRow): string {
  return `${kind} ${ref}`
}
