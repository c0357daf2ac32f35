import { formatLine } from '../../audit/line.ts'
import type { ReadEntry } from '../../audit/store.ts'
import type { Principal } from '../../base/agent.ts'
import type { Log } from '../../base/log.ts'
import type { Store } from '../../store/store.ts'
import type { AuditEntryAnswer } from '../contract.ts'
import { formatEvent } from './event-stream.ts'

/** The audit as it grows, for any number of readers; each entry is put into its wire form once. */
export interface Feed {
  /** The number of the last entry that was committed since the service started; 0 before the first. */
  latest(): number
  subscribe(reader: FeedReader): () => void
  close(): void
}

type FeedReader = (events: readonly FeedEvent[]) => void

export interface FeedEvent {
  readonly entry: ReadEntry
  /** The entry as it goes over the wire. */
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
        // One reader's trouble must reach neither the others nor the commit.
        log.error({ err: error }, 'an event could not be sent')
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
      // Not every reader wants it in this form.
      text ??= formatEvent(entry.type, entry.seq, JSON.stringify(wireEntry(entry)))
      return text
    },
  }
}

export function wireEntry(entry: ReadEntry): AuditEntryAnswer {
  const { seq, chain, at, type, class: kept, actor, subject, text, confidence, data, hash } = entry
  return {
    seq,
    chain,
    at,
    type,
    class: kept,
    actor,
    ...(subject === undefined ? {} : { subject }),
    text,
    ...(confidence === undefined ? {} : { confidence }),
    data: data ?? {},
    hash,
    line: formatLine(entry),
  }
}

/** People see all; an agent what is public and what it is a party to. `streamAudit` says the same in SQL. */
export function mayKnow(principal: Principal, name: string, entry: FeedEvent['entry']): boolean {
  if (principal.kind !== 'agent' || entry.class === 'public') return true
  return entry.class === 'internal' && (entry.actor === name || entry.subject === name)
}
