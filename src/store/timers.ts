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

/** Handles a due timer, in the transaction that removes its row. */
type OnDue = (tx: Tx, ref: string) => Promise<void>

/**
 * Timers are rows (C8). One alarm is set for the earliest of them, without polling. After a restart, overdue timers fire
 * at once.
 */
export interface Timers {
  on(kind: TimerKind, act: OnDue): void
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
      const next = await nextDue(store)
      // Another daemon holds timers that are due but couldn't be taken.
      if (next !== undefined) setFor(isIdle ? Math.max(next, clock.now() + TAKEN_MS) : next)
    } catch (error) {
      if (stopped) return
      log.error({ err: error }, 'could not read the timers; retrying in a second')
      setFor(clock.now() + 1000)
    }
  }

  /** One transaction per timer: a failing timer is postponed and doesn't affect the others. */
  async function fireNext(): Promise<boolean> {
    let taken: TimerRow | undefined
    try {
      await store.write(async (tx) => {
        taken = undefined
        // Checked inside the transaction, where no halt can intervene.
        if (isHalted()) return
        taken = (await takeDue(tx, 1))[0]
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
