import type { SessionPort } from '../runtimes/runtime.ts'
import type { FollowerLog } from './line-follower.ts'

export interface Keeping {
  /** Soon, and once for many changes: the position of a line counts when the line was dealt with. */
  soon(): void
  /** Whether it is kept now. */
  now(): Promise<boolean>
  /** Now, for the last time. */
  close(): Promise<void>
}

/** Keeps what a session must know after a restart, as it is when it is written down. */
export function createKeeping(
  port: Pick<SessionPort, 'keep'>,
  log: FollowerLog,
  current: () => unknown,
): Keeping {
  let isDue = false
  let closed = false

  const keep = () =>
    port.keep(current()).then(
      () => true,
      (error: unknown) => {
        log.warn({ err: error }, 'a place could not be kept')
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
