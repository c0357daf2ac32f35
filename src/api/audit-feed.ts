import { formatLine } from '../audit/readable-line.ts'
import type { ReadEntry } from '../audit/store.ts'
import type { Principal } from '../base/agent.ts'
import type { Log } from '../base/log.ts'
import type { Store } from '../store/store.ts'
import type { AuditEntryAnswer } from './contract.ts'
import { formatEvent } from './sse.ts'

/** Pushes new audit entries to any number of readers and serializes each entry once. */
export interface Feed {
  /** The sequence number of the last entry committed since the service started; 0 before the first. */
  latest(): number
  subscribe(reader: FeedReader): () => void
  close(): void
}

type FeedReader = (events: readonly FeedEvent[]) => void

export interface FeedEvent {
  readonly entry: ReadEntry
  /** The entry as a server-sent event. */
  readonly text: string
}

export function createFeed(store: Store, log: Log): Feed {
  const readers = new Set<FeedReader>()
  let latest = 0
  const stop = store.onCommit((entries) => {
    latest = entries.at(-1)!.seq
    if (readers.size === 0) return
    const events = entries.map(feedEvent)
    for (const reader of [...readers]) {
      try {
        reader(events)
      } catch (error) {
        // A failing reader must affect neither the other readers nor the commit.
        log.error({ err: error }, 'could not send an event')
      }
    }
  })
  return {
    latest: () => latest,
    subscribe(reader) {
      readers.add(reader)
      return () => void readers.delete(reader)
    },
    close: stop,
  }
}

export function feedEvent(entry: ReadEntry): FeedEvent {
  let text: string | undefined
  return {
    entry,
    get text() {
      // Formatted when it is first read, because some readers use another format.
      text ??= formatEvent(entry.type, entry.seq, JSON.stringify(wireEntry(entry)))
      return text
    },
  }
}

export function wireEntry(entry: ReadEntry): AuditEntryAnswer {
  const { seq, chain, at, type, class: visibility, actor, subject, text, confidence, data, hash } = entry
  return {
    seq,
    chain,
    at,
    type,
    class: visibility,
    actor,
    ...(subject === undefined ? {} : { subject }),
    text,
    ...(confidence === undefined ? {} : { confidence }),
    data: data ?? {},
    hash,
    line: formatLine(entry),
  }
}

/** People see every entry; agents see public ones and internal ones they take part in. `streamAudit` is the same in SQL. */
export function mayKnow(principal: Principal, name: string, entry: FeedEvent['entry']): boolean {
  if (principal.kind !== 'agent' || entry.class === 'public') return true
  return entry.class === 'internal' && (entry.actor === name || entry.subject === name)
}
