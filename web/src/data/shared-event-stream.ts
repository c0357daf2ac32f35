import type { Client } from '../../../src/client/client.ts'
import type { AuditEntryAnswer } from '../../../src/service/contract.ts'

type Entry = AuditEntryAnswer

/** What the window with the stream tells the others, and what they ask it. */
type Word =
  | { kind: 'entry'; entry: Entry; before: number | undefined }
  | { kind: 'link'; isUp: boolean; isSeen: boolean }
  | { kind: 'ping' }

export interface EventsReader {
  signal: AbortSignal
  onEntry(entry: Entry): void
  onLink(isUp: boolean): void
  /** Something may have been missed: what is shown must be read again. */
  onGap(): void
}

/** A browser window in front asks so often whether the one with the stream still answers, and waits so long. */
const PING_MS = 20_000
const PONG_MS = 5000
/** A window behind others has its timers slowed down: one in front does not wait for it to connect again. */
const PATIENCE_MS = 3000
/** The longest pause between two attempts to connect again. */
const BACK_MS = 1500

/**
 * The audit as it grows, by one stream for all windows of a browser: browsers open six connections to a service at most,
 * and a stream keeps one for itself. The window that has the lock has the stream; when it is closed, another one goes on
 * after what it saw last. Without locks (HTTP from another machine) each window has its own. Ends with the signal; throws
 * what waiting cannot mend.
 */
export async function followEvents(client: Client, name: string, reader: EventsReader): Promise<void> {
  const { signal } = reader
  let last: number | undefined
  const take = (entry: Entry) => {
    if (last !== undefined && entry.seq <= last) return
    last = entry.seq
    reader.onEntry(entry)
  }
  async function lead(end: AbortSignal, tell: (word: Word) => void): Promise<void> {
    const onLink = (isUp: boolean) => {
      tell({ kind: 'link', isUp, isSeen: !document.hidden })
      reader.onLink(isUp)
    }
    // Whoever had the stream before may not have told all of it: every window reads what it shows again.
    onLink(false)
    const after = last === undefined ? {} : { after: last }
    for await (const entry of client.events({ ...after, signal: end, onLink, longestMs: BACK_MS })) {
      tell({ kind: 'entry', entry, before: last })
      take(entry)
    }
  }
  if (navigator.locks === undefined || typeof BroadcastChannel === 'undefined') return lead(signal, () => {})

  const channel = new BroadcastChannel(name)
  let isLeader = false
  let isUp = false
  let heardAt = performance.now()
  const say = (word: Word) => {
    if (word.kind === 'link') isUp = word.isUp
    channel.postMessage(word)
  }
  channel.onmessage = ({ data }: MessageEvent<Word>) => {
    if (isLeader) {
      if (data.kind === 'ping') say({ kind: 'link', isUp, isSeen: !document.hidden })
      return
    }
    if (data.kind === 'ping') return
    heardAt = performance.now()
    if (data.kind === 'link') {
      isUp = data.isUp
      reader.onLink(isUp)
      if (!isUp && !data.isSeen && !document.hidden) setTimeout(() => isUp || takeNow(), PATIENCE_MS)
      return
    }
    // Numbers that begin anew are those of another store.
    if (data.before === undefined && last !== undefined && data.entry.seq <= last) last = undefined
    const isMissing = last !== undefined && data.before !== undefined && data.before > last
    take(data.entry)
    if (isMissing) reader.onGap()
  }
  channel.postMessage({ kind: 'ping' } satisfies Word)

  /** A window may hang, with the stream in its hands: then one that somebody looks at takes it. */
  let takeNow = () => {}
  const asking = setInterval(() => {
    if (isLeader || document.hidden) return
    const askedAt = performance.now()
    channel.postMessage({ kind: 'ping' } satisfies Word)
    setTimeout(() => {
      if (heardAt < askedAt) takeNow()
    }, PONG_MS)
  }, PING_MS)

  try {
    while (!signal.aborted) {
      const waiting = new AbortController()
      let isTaking = false
      takeNow = () => {
        if (isLeader || document.hidden) return
        isTaking = true
        waiting.abort()
      }
      const end = new AbortController()
      const hold = async () => {
        isLeader = true
        try {
          await lead(AbortSignal.any([signal, end.signal]), say)
        } finally {
          isLeader = false
        }
      }
      const lost = (error: unknown) => {
        // The wait was ended, or another window took the lock: not a fault of the stream.
        if (error instanceof DOMException && error.name === 'AbortError') return
        throw error
      }
      await navigator.locks
        .request(name, { signal: AbortSignal.any([signal, waiting.signal]) }, hold)
        .catch(lost)
      if (isTaking && !signal.aborted) await navigator.locks.request(name, { steal: true }, hold).catch(lost)
      end.abort()
    }
  } finally {
    clearInterval(asking)
    channel.close()
  }
}
