import type { Session } from './session.ts'

/** Daemons say here that they have written something. Only a hint: whoever misses one finds the rows all the same. */
export const CHANNEL = 'orchub'

interface HintsOptions {
  /** Whose own words are not news. */
  daemon: string
  connect(listening: { onNotify(payload: string): void; onLost(): void }): Promise<Session>
}

/** A busy neighbour has something to say a thousand times a second. */
const PAUSE_MS = 50
const TRY_AGAIN_MS = 1000
/** A connection that only listens would not notice that nobody is there any more. */
const PROBE_MS = 30_000

/** Listens for other daemons from the first listener on. Each new connection is a hint as well: something may have been missed. */
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

  /** At once, and then no more often than that. */
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
    let session: Session | undefined
    try {
      session = await connect({
        onNotify: (payload) => (payload === daemon ? undefined : hint()),
        onLost: () => (session === undefined ? undefined : openLater()),
      })
      await session.script(`LISTEN ${CHANNEL}`)
      hint()
      probe(session)
    } catch {
      // Whoever writes meets the fault, and names it.
      if (session === undefined) openLater()
      else await session.end()
    }
  }

  function openLater() {
    if (!closed) later(TRY_AGAIN_MS, () => void open())
  }

  function probe(session: Session) {
    later(PROBE_MS, () => {
      if (session.isLost()) return
      // Its loss is told by itself.
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
