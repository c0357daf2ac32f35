import type { SessionPort } from '../runtimes/runtime.ts'
import type { FollowerLog } from './line-follower.ts'

interface StateSaver {
  /** Saves soon, once for many changes; a line's position counts after the line was processed. */
  soon(): void
  /** Saves now; resolves with whether that succeeded. */
  now(): Promise<boolean>
  /** Saves now, for the last time. */
  close(): Promise<void>
}

/** Saves the session's state for a restart, as it is at the time of writing. */
export function createStateSaver(
  port: Pick<SessionPort, 'saveState'>,
  log: FollowerLog,
  current: () => unknown,
): StateSaver {
  let isDue = false
  let closed = false

  const keep = () =>
    port.saveState(current()).then(
      () => true,
      (error: unknown) => {
        log.warn({ err: error }, 'a position could not be saved')
        return false
      },
    )

  return {
    soon() {
      if (isDue || closed) return
      isDue = true
      setImmediate(() => {
        isDue = false
        if (!closed) void keep()
      })
    },
    now: keep,
    async close() {
      if (closed) return
      await keep()
      closed = true
    },
  }
}
