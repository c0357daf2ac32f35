import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'

/** A queue in the store: what is due is taken one by one, and an alarm is set for what is not yet. */
export interface Queue {
  next(): Promise<boolean>
  due(): Promise<number | undefined>
}

export interface Loop {
  /** There may be something to do. */
  kick(): void
  /** Resolves when what is under way has ended. */
  close(): Promise<void>
}

const AGAIN_MS = 1000

export function startLoop(queue: Queue, clock: Clock, log: Log, isHalted: () => boolean): Loop {
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
      if (due !== undefined) wait(isHalted() ? AGAIN_MS : Math.max(0, due - clock.now()))
    } catch (error) {
      if (isClosed) return
      log.error({ err: error }, 'the GitHub team came to a stop; it goes on in a second')
      wait(AGAIN_MS)
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
