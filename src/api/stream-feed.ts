import { setTimeout } from 'node:timers/promises'
import { AppError } from '../base/errors.ts'
import { readHead } from '../store/group-commit.ts'
import type { FeedEvent } from './audit-feed.ts'
import { type ApiCall, type ApiContext, isInTeam } from './handle-request.ts'
import { abortStream, formatEvent, startEventStream } from './sse.ts'

/** Entries per read for a reader that catches up from the store. */
export const FEED_PAGE = 500

/** Selects and formats the audit entries for one reader. */
interface StreamFeedOptions {
  /** Start after this sequence number; undefined starts with new entries. */
  after: number | undefined
  /** Reads entries after this number, oldest first; fewer than FEED_PAGE means there are no more. */
  read(after: number): Promise<readonly FeedEvent[]>
  /** Formats the events this reader may see; empty if there are none. */
  render(events: readonly FeedEvent[]): string
  /** Subscribes to notices that are not in the audit and have no sequence number; returns the unsubscribe function. */
  notices?(send: (format: (position: number) => string) => void): () => void
  /** For streams that end, such as those of a task or a run. */
  ending?: {
    /** Whether these events may contain the end; the reader then catches up from the store. */
    isNear(events: readonly FeedEvent[]): boolean
    /** Formats the final event once everything before it is stored; undefined before the end. */
    finalEvent(): Promise<((position: number) => string) | undefined>
  }
}

/**
 * Streams audit entries as they are committed. A reader is either live and gets each commit at once, or behind and
 * catches up from the store. A reader falls behind when its connection is full; entries are never buffered in memory
 * for it and never dropped.
 */
export async function streamFeed(
  context: ApiContext,
  call: ApiCall,
  options: StreamFeedOptions,
): Promise<void> {
  const { engine, feed, openCalls } = context
  const head = (await readHead(engine.store, engine.store.daemon))?.seq ?? 0
  const after = options.after ?? head
  if (after > head) throw unknownEvent(after, head)
  const stream = startEventStream(call.outgoing, openCalls.open('events', call.caller, call.outgoing), after)
  const { ending } = options
  let position = after
  let live = false
  let isOver = false
  let wake = () => {}
  stream.signal.addEventListener('abort', () => wake(), { once: true })

  function send(events: readonly FeedEvent[]) {
    const fresh = events.filter(({ entry }) => entry.seq > position)
    const text = options.render(fresh)
    if (text !== '') stream.send(text)
    position = fresh.at(-1)?.entry.seq ?? position
  }

  const stop = feed.subscribe((events) => {
    if (!live) return
    if (call.outgoing.writableNeedDrain || !isInTeam(context, call) || ending?.isNear(events) === true) {
      live = false
      wake()
    } else send(events)
  })

  const stopNotices = options.notices?.((format) => {
    if (!stream.signal.aborted && !call.outgoing.writableNeedDrain) stream.send(format(position))
  })

  async function catchUp() {
    while (!stream.signal.aborted) {
      // Before the read, so that the read includes everything up to the end.
      const finalEvent = await ending?.finalEvent()
      // The next read includes everything committed up to here.
      const target = feed.latest()
      const page = await options.read(position)
      send(page)
      const isAll = page.length < FEED_PAGE
      if (isAll && finalEvent !== undefined) {
        stream.send(finalEvent(position))
        isOver = true
        return
      }
      if (isAll) position = Math.max(position, target)
      await stream.drained()
      // No commit can happen between this check and the assignment, so no entry is missed or sent twice.
      live = position >= feed.latest()
      if (live) return
    }
  }

  try {
    while (!stream.signal.aborted && isInTeam(context, call)) {
      await catchUp()
      if (isOver) return
      await new Promise<void>((resolve) => {
        wake = resolve
        if (!live || stream.signal.aborted) resolve()
      })
      await stream.drained()
    }
  } catch (error) {
    abortStream(engine.log, call.outgoing, error)
  } finally {
    stop()
    stopNotices?.()
    stream.end()
  }
}

/** A reconnecting reader sends Last-Event-ID by itself; it is newer than the `after` of the original URL. */
export function resumePoint({
  incoming,
  query,
}: ApiCall<'events' | 'taskEvents' | 'runEvents'>): number | undefined {
  const header = incoming.headers['last-event-id']
  if (header === undefined || header === '') return query.after
  if (typeof header === 'string' && /^\d{1,15}$/.test(header)) return Number(header)
  throw new AppError('INVALID_REQUEST', 'The Last-Event-ID is not the number of an event', {
    hint: 'Send the id of the last event you received, or omit the header.',
  })
}

function unknownEvent(after: number, head: number): AppError {
  return new AppError('CONFLICT', `There is no event ${after}: the last one is ${head}`, {
    hint: 'The id comes from another store. Connect without it to get new events.',
  })
}

/** The shortest time between two checks. */
const CHECK_INTERVAL_MS = 500

/**
 * Notifies the reader of changes that are not in the audit: sends an event whenever `version` returns a new value,
 * and calls it only after a write. Starts with one event, so that no change falls between the reader's last fetch
 * and this stream.
 */
export async function streamChanges(
  context: ApiContext,
  call: ApiCall,
  version: () => Promise<string>,
): Promise<void> {
  const { store } = context.engine
  const stream = startEventStream(call.outgoing, context.openCalls.open('events', call.caller, call.outgoing))
  let isDue = false
  let wake = () => {}
  const due = () => {
    isDue = true
    wake()
  }
  const stops = [store.onWrite(due), store.onOtherDaemons(due)]
  stream.signal.addEventListener('abort', due, { once: true })
  let count = 0
  let last: string | undefined
  try {
    while (!stream.signal.aborted && isInTeam(context, call)) {
      isDue = false
      const now = await version()
      if (now !== last) stream.send(formatEvent('changed', ++count, '{"changed":true}'))
      last = now
      await stream.drained()
      await setTimeout(CHECK_INTERVAL_MS, undefined, { signal: stream.signal }).catch(() => {})
      if (isDue) continue
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  } catch (error) {
    // An AppError means the reader lost its permission: end the stream without giving a reason.
    if (!(error instanceof AppError)) context.engine.log.warn({ err: error }, 'could not stream changes')
  } finally {
    for (const stop of stops) stop()
    stream.end()
  }
}
