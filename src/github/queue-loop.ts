import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'

/** A queue in the store. */
export interface WorkQueue {
  /** Processes the next due item; false if there is none. */
  next(): Promise<boolean>
  /** When the next item is due. */
  due(): Promise<number | undefined>
}

interface QueueLoop {
  /** There may be a due item. */
  kick(): void
  /** Resolves when the current item is finished. */
  close(): Promise<void>
}

/** After an error, and while the service is halted. */
const RETRY_MS = 1000

/** Processes due items one at a time, and sleeps until the next one is due. */
export function startLoop(queue: WorkQueue, clock: Clock, log: Log, isHalted: () => boolean): QueueLoop {
  let running: Promise<void> | undefined
  let isKicked = false
  let isClosed = false
  let cancel: (() => void) | undefined

  async function run() {
    try {
      do {
        isKicked = false
        while (!isClosed && !isHalted() && (await queue.next())) {}
      } while (isKicked && !isClosed && !isHalted())
      if (isClosed) return
      const due = await queue.due()
      if (due !== undefined) wait(isHalted() ? RETRY_MS : Math.max(0, due - clock.now()))
    } catch (error) {
      if (isClosed) return
      log.error({ err: error }, 'a queue of the GitHub team failed; retrying in a second')
      wait(RETRY_MS)
    } finally {
      running = undefined
    }
    if (isKicked && !isClosed) kick()
  }

  function wait(ms: number) {
    cancel?.()
    cancel = clock.after(Math.min(ms, 2 ** 31 - 1), () => kick())
  }

  function kick() {
    isKicked = true
    if (isClosed) return
    running ??= run()
  }

  return {
    kick,
    async close() {
      isClosed = true
      cancel?.()
      await running
    },
  }
}

const MINUTE_MS = 60_000

/** Limits how many items start in any minute (C18). */
export function createRateWindow(perMinute: () => number, now: () => number) {
  let started: number[] = []

  /** Zero if an item may start now. */
  function waitMs(): number {
    const at = now()
    started = started.filter((time) => time > at - MINUTE_MS && time <= at)
    const limit = perMinute()
    return started.length < limit ? 0 : started[started.length - limit]! + MINUTE_MS - at
  }

  return { waitMs, begin: () => void started.push(now()) }
}
