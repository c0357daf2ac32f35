import { type Client, ClientError } from '../../../src/client/client.ts'
import type { AuditEntry } from './query-table.ts'
import { followEvents } from './shared-event-stream.ts'

export type ConnectionState = 'connecting' | 'live' | 'lost'

export interface EventFeed {
  connection(): ConnectionState
  /** The newest audit entries, oldest first. */
  recent(): readonly AuditEntry[]
  /** Calls back when the connection or the recent entries change. */
  subscribe(listener: () => void): () => void
  /** Calls back with each batch of new entries. */
  onEntries(listener: (entries: readonly AuditEntry[]) => void): () => void
  close(): void
}

interface FeedOptions {
  client: Client
  /** Windows that use the same name share one stream. */
  name: string
  /** The topics of new entries, `message` for `message.accepted`. */
  onTopics(topics: ReadonlySet<string>): void
  /** Entries may be missing: everything on screen must be read again. */
  onMissed(): void
  onSignedOut(): void
}

const RECENT_ENTRIES = 400
const BACKLOG_ENTRIES = 120
/** Batch entries: people cannot read faster. */
const BATCH_MS = 100
/** A hidden page gets no animation frames, but still has to show new requests in its title. */
const HIDDEN_BATCH_MS = 250
const RETRY_MS = 1000

/** Follows the audit log and hands on new entries in batches, one per animation frame at most. */
export function openEventFeed({ client, name, onTopics, onMissed, onSignedOut }: FeedOptions): EventFeed {
  const closed = new AbortController()
  const changeListeners = new Set<() => void>()
  const entryListeners = new Set<(entries: readonly AuditEntry[]) => void>()
  let recent: readonly AuditEntry[] = []
  let connection: ConnectionState = 'connecting'
  let isFirstReport = true
  let batch: AuditEntry[] = []
  let isScheduled = false
  let flushedAt = Number.NEGATIVE_INFINITY

  function schedule() {
    if (isScheduled) return
    isScheduled = true
    let isDone = false
    const once = () => {
      if (isDone) return
      isDone = true
      flush()
    }
    const wait = Math.max(0, flushedAt + BATCH_MS - performance.now())
    setTimeout(() => requestAnimationFrame(once), wait)
    setTimeout(once, wait + HIDDEN_BATCH_MS)
  }

  function flush() {
    isScheduled = false
    flushedAt = performance.now()
    const entries = batch
    batch = []
    if (entries.length > 0) {
      remember(entries)
      onTopics(new Set(entries.map(({ type }) => type.split('.', 1)[0]!)))
      for (const listener of entryListeners) listener(entries)
    }
    for (const listener of [...changeListeners]) listener()
  }

  function remember(entries: readonly AuditEntry[]) {
    const known = new Set(recent.map(({ seq }) => seq))
    recent = [...recent, ...entries.filter(({ seq }) => !known.has(seq))]
      .toSorted((one, other) => one.seq - other.seq)
      .slice(-RECENT_ENTRIES)
  }

  /** Loads the entries before the stream began, so that a page just opened is not empty. */
  async function loadBacklog() {
    try {
      const backlog: AuditEntry[] = []
      for await (const entry of client.audit({ limit: BACKLOG_ENTRIES })) backlog.push(entry)
      // The next flush adds the entries that also came by the stream.
      const isInBatch = new Set(batch.map(({ seq }) => seq))
      remember(backlog.filter(({ seq }) => !isInBatch.has(seq)))
      schedule()
    } catch {
      // The stream still brings everything new.
    }
  }

  function readAgain() {
    onMissed()
    void loadBacklog()
  }

  async function follow() {
    const reader = {
      signal: closed.signal,
      onEntry(entry: AuditEntry) {
        batch.push(entry)
        schedule()
      },
      onLink(isUp: boolean) {
        const isBack = isUp && connection !== 'live'
        // The first report only says that the stream is being opened.
        connection = isUp ? 'live' : isFirstReport ? 'connecting' : 'lost'
        isFirstReport = false
        // Read only once the stream is up, so that no entry falls between the two (S2.16).
        if (isBack) readAgain()
        schedule()
      },
      onGap: readAgain,
    }
    while (!closed.signal.aborted) {
      try {
        await followEvents(client, name, reader)
      } catch (error) {
        if (closed.signal.aborted) return
        if (error instanceof ClientError && error.code === 'UNAUTHENTICATED') return onSignedOut()
        connection = 'lost'
        schedule()
        // The service may have another store, or not be up yet: start over.
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      }
    }
  }

  void follow()

  return {
    connection: () => connection,
    recent: () => recent,
    subscribe(listener) {
      changeListeners.add(listener)
      return () => changeListeners.delete(listener)
    },
    onEntries(listener) {
      entryListeners.add(listener)
      return () => entryListeners.delete(listener)
    },
    close: () => closed.abort(),
  }
}
