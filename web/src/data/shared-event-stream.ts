import type { Client } from '../../../src/client/client.ts'
import type { AuditEntry } from './query-table.ts'

/** Messages between the windows of a browser. The leader is the window with the stream. */
type WindowMessage =
  | { kind: 'entry'; entry: AuditEntry; before: number | undefined }
  | { kind: 'link'; isUp: boolean; isSeen: boolean }
  | { kind: 'ping' }

export interface EventsReader {
  signal: AbortSignal
  onEntry(entry: AuditEntry): void
  onLink(isUp: boolean): void
  /** Entries may be missing: everything on screen must be read again. */
  onGap(): void
}

/** A visible window pings the leader this often, and waits this long for its answer. */
const PING_MS = 20_000
const PONG_MS = 5000
/** Browsers slow down timers of hidden windows, so a visible one does not wait longer for a hidden leader to reconnect. */
const HIDDEN_LEADER_MS = 3000
/** The longest pause between two attempts to reconnect. */
const MAX_RETRY_MS = 1500

/**
 * Follows the audit log with one stream for all windows of a browser: a browser opens at most six connections to one
 * service, and a stream occupies one. The window that holds the lock leads, and broadcasts each entry; when it closes,
 * another one continues after the last entry it saw. Without locks (HTTP from another machine) each window has its own
 * stream. Returns when the signal aborts; throws errors that a retry cannot fix.
 */
export async function followEvents(client: Client, name: string, reader: EventsReader): Promise<void> {
  const { signal } = reader
  let last: number | undefined
  const take = (entry: AuditEntry) => {
    if (last !== undefined && entry.seq <= last) return
    last = entry.seq
    reader.onEntry(entry)
  }
  async function lead(end: AbortSignal, broadcast: (message: WindowMessage) => void): Promise<void> {
    const onLink = (isUp: boolean) => {
      broadcast({ kind: 'link', isUp, isSeen: !document.hidden })
      reader.onLink(isUp)
    }
    // The leader before may not have broadcast every entry: make every window read again.
    onLink(false)
    const after = last === undefined ? {} : { after: last }
    for await (const entry of client.events({ ...after, signal: end, onLink, longestMs: MAX_RETRY_MS })) {
      broadcast({ kind: 'entry', entry, before: last })
      take(entry)
    }
  }
  if (navigator.locks === undefined || typeof BroadcastChannel === 'undefined') return lead(signal, () => {})

  const channel = new BroadcastChannel(name)
  let isLeader = false
  let isUp = false
  let heardAt = performance.now()
  const send = (message: WindowMessage) => {
    if (message.kind === 'link') isUp = message.isUp
    channel.postMessage(message)
  }
  channel.onmessage = ({ data }: MessageEvent<WindowMessage>) => {
    if (isLeader) {
      if (data.kind === 'ping') send({ kind: 'link', isUp, isSeen: !document.hidden })
      return
    }
    if (data.kind === 'ping') return
    heardAt = performance.now()
    if (data.kind === 'link') {
      isUp = data.isUp
      reader.onLink(isUp)
      if (!isUp && !data.isSeen && !document.hidden) setTimeout(() => isUp || takeLead(), HIDDEN_LEADER_MS)
      return
    }
    // Sequence numbers that start over belong to another store.
    if (data.before === undefined && last !== undefined && data.entry.seq <= last) last = undefined
    const isMissing = last !== undefined && data.before !== undefined && data.before > last
    take(data.entry)
    if (isMissing) reader.onGap()
  }
  channel.postMessage({ kind: 'ping' } satisfies WindowMessage)

  /** A leader may hang: then a visible window takes the stream from it. */
  let takeLead = () => {}
  const asking = setInterval(() => {
    if (isLeader || document.hidden) return
    const askedAt = performance.now()
    channel.postMessage({ kind: 'ping' } satisfies WindowMessage)
    setTimeout(() => {
      if (heardAt < askedAt) takeLead()
    }, PONG_MS)
  }, PING_MS)

  try {
    while (!signal.aborted) {
      const waiting = new AbortController()
      let isStealing = false
      takeLead = () => {
        if (isLeader || document.hidden) return
        isStealing = true
        waiting.abort()
      }
      const end = new AbortController()
      const hold = async () => {
        isLeader = true
        try {
          await lead(AbortSignal.any([signal, end.signal]), send)
        } finally {
          isLeader = false
        }
      }
      const lost = (error: unknown) => {
        // The wait was aborted, or another window took the lock: not an error of the stream.
        if (error instanceof DOMException && error.name === 'AbortError') return
        throw error
      }
      await navigator.locks
        .request(name, { signal: AbortSignal.any([signal, waiting.signal]) }, hold)
        .catch(lost)
      if (isStealing && !signal.aborted)
        await navigator.locks.request(name, { steal: true }, hold).catch(lost)
      end.abort()
    }
  } finally {
    clearInterval(asking)
    channel.close()
  }
}
