/**
 * Learns that other daemons have written. States of the connection: unused until the first listener is added; then
 * connecting, listening, or waiting TRY_AGAIN_MS to reconnect; closed. States of the notification: ready; paused for
 * PAUSE_MS after each call of the listeners; paused with one pending, which calls them again when the pause ends.
 */
import type { PostgresSession } from './session.ts'

/** The channel on which daemons announce writes. Notifications are hints only: a daemon that misses one still finds the rows. */
export const CHANNEL = 'orchub'

interface NotificationOptions {
  /** This daemon, whose own notifications are ignored. */
  daemon: string
  connect(listening: { onNotify(payload: string): void; onLost(): void }): Promise<PostgresSession>
}

/** Minimum time between two calls of the listeners: a busy daemon notifies a thousand times a second. */
const PAUSE_MS = 50
/** Long enough not to flood a server that is restarting. The rows are found without notifications, too. */
const TRY_AGAIN_MS = 1000
/** Interval of test queries: a connection that only listens would not notice a dead server. */
const PROBE_MS = 30_000

/** Connects when the first listener is added. Notifies after each reconnection, because notifications may have been missed. */
export function listenForNotifications({ daemon, connect }: NotificationOptions) {
  const listeners = new Set<() => void>()
  const timers = new Set<NodeJS.Timeout>()
  let isOpen = false
  let closed = false
  let isPaused = false
  let isPending = false

  function later(ms: number, act: () => void) {
    const timer = setTimeout(() => {
      timers.delete(timer)
      act()
    }, ms)
    timers.add(timer.unref())
  }

  /** Calls the listeners at once, then at most every PAUSE_MS. */
  function notify() {
    if (closed) return
    isPending = isPaused
    if (isPaused) return
    isPaused = true
    later(PAUSE_MS, () => {
      isPaused = false
      if (isPending) notify()
    })
    for (const listener of listeners) listener()
  }

  async function open() {
    let session: PostgresSession | undefined
    try {
      session = await connect({
        onNotify: (payload) => (payload === daemon ? undefined : notify()),
        onLost: () => (session === undefined ? undefined : openLater()),
      })
      await session.script(`LISTEN ${CHANNEL}`)
      notify()
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
