import type { Clock } from './clock.ts'
import type { Log } from './log.ts'

/** A queue in the store. */
export interface WorkQueue {
  /** Processes the next due item; false if there is none. */
  next(): Promise<boolean>
  /** When the next item is due. During a halt it is called without `next`. */
  due(): Promise<number | undefined>
}

interface QueueLoop {
  /** There may be a due item. */
  kick(): void
  /** Resolves when the current item is finished. */
  close(): Promise<void>
}

interface QueueLoopOptions {
  readonly clock: Clock
  readonly log: Log
  /** Nothing is processed while it returns true. */
  readonly isHalted?: () => boolean
}

/** A full disk or a lost database may last for minutes, so a shorter delay would flood the log. */
const RETRY_MS = 5000
const HALT_POLL_MS = 1000
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Processes due items one at a time, and sleeps until the next one is due. Idle until the first kick. */
export function createQueueLoop(
  name: string,
  queue: WorkQueue,
  { clock, log, isHalted = () => false }: QueueLoopOptions,
): QueueLoop {
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
      if (due !== undefined) wait(isHalted() ? HALT_POLL_MS : Math.max(0, due - clock.now()))
    } catch (error) {
      if (isClosed) return
      log.error({ err: error, queue: name }, 'cannot process a queue; retrying')
      wait(RETRY_MS)
    } finally {
      running = undefined
    }
    if (isKicked && !isClosed) kick()
  }

  function wait(ms: number) {
    cancel?.()
    cancel = clock.after(Math.min(ms, LONGEST_TIMER_MS), kick)
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
