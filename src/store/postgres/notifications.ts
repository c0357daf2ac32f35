import type { PostgresSession } from './session.ts'

/** The channel on which daemons announce writes. Notifications are hints only: a daemon that misses one still finds the rows. */
export const CHANNEL = 'orchub'

interface HintsOptions {
  /** This daemon, whose own notifications are ignored. */
  daemon: string
  connect(listening: { onNotify(payload: string): void; onLost(): void }): Promise<PostgresSession>
}

/** Minimum time between hints: a busy daemon notifies a thousand times a second. */
const PAUSE_MS = 50
const TRY_AGAIN_MS = 1000
/** A connection that only listens would not notice a dead server. */
const PROBE_MS = 30_000

/** Connects when the first listener is added. Each reconnection counts as a hint, because notifications may have been missed. */
export function listenForHints({ daemon, connect }: HintsOptions) {
  const listeners = new Set<() => void>()
  const timers = new Set<NodeJS.Timeout>()
  let isOpen = false
  let closed = false
  let isResting = false
  let isOwed = false

  function later(ms: number, act: () => void) {
    const timer = setTimeout(() => {
      timers.delete(timer)
      act()
    }, ms)
    timers.add(timer.unref())
  }

  /** Calls the listeners at once, then at most every PAUSE_MS. */
  function hint() {
    if (closed) return
    isOwed = isResting
    if (isResting) return
    isResting = true
    later(PAUSE_MS, () => {
      isResting = false
      if (isOwed) hint()
    })
    for (const listener of listeners) listener()
  }

  async function open() {
    let session: PostgresSession | undefined
    try {
      session = await connect({
        onNotify: (payload) => (payload === daemon ? undefined : hint()),
        onLost: () => (session === undefined ? undefined : openLater()),
      })
      await session.script(`LISTEN ${CHANNEL}`)
      hint()
      probe(session)
    } catch {
      // The writer reports the fault; only reconnect here.
      if (session === undefined) openLater()
      else await session.end()
    }
  }

  function openLater() {
    if (!closed) later(TRY_AGAIN_MS, () => void open())
  }

  function probe(session: PostgresSession) {
    later(PROBE_MS, () => {
      if (session.isLost()) return
      // A failure is reported through onLost.
      session.query('SELECT 1').catch(() => {})
      probe(session)
    })
  }

  return {
    on(listener: () => void): () => void {
      listeners.add(listener)
      if (!isOpen) {
        isOpen = true
        void open()
      }
      return () => void listeners.delete(listener)
    },
    close() {
      closed = true
      for (const timer of timers) clearTimeout(timer)
      timers.clear()
    },
  }
}
