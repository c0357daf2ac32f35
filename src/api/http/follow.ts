import { AppError } from '../../base/errors.ts'
import { personBehind } from '../../commands/team.ts'
import { breakOff } from '../../messages/routes/deliveries.ts'
import { readHead } from '../../store/audit-rows.ts'
import type { Call, Desk } from './call.ts'
import { startEventStream } from './event-stream.ts'
import type { FeedEvent } from './feed.ts'

/** How much is read from the store at once for a reader that catches up. */
export const PAGE = 500

/** What of the audit one reader gets. */
interface Following {
  /** Where to begin: all after that number. Undefined: with what comes from now on. */
  after: number | undefined
  /** What comes after that number, oldest first; fewer than PAGE when that is all. */
  read(after: number): Promise<readonly FeedEvent[]>
  /** As it goes over the wire; empty where nothing of it is for this reader. */
  render(events: readonly FeedEvent[]): string
  /** What is not in the audit, and told at once to whoever follows: it has no number of its own. The returned function ends it. */
  notices?(say: (words: (position: number) => string) => void): () => void
  /** For what has an end. */
  ending?: {
    /** Whether the end may be among these; then they are read from the store. */
    isNear(events: readonly FeedEvent[]): boolean
    /** The last words, once it has ended: all that belongs to it is stored by then. */
    lastWords(): Promise<((position: number) => string) | undefined>
  }
}

/**
 * Sends what is committed as it is committed. A reader is either live, and gets each commit as it happens, or behind,
 * and is read to from the store. It falls behind when its connection is full; nothing is ever kept for it in memory
 * or dropped.
 */
export async function follow(desk: Desk, call: Call, following: Following): Promise<void> {
  const { engine, feed, openCalls } = desk
  const head = (await readHead(engine.store, engine.store.daemon))?.seq ?? 0
  const after = following.after ?? head
  if (after > head) throw notFromHere(after, head)
  const stream = startEventStream(call.outgoing, openCalls.open('events', call.caller, call.outgoing), after)
  const { ending } = following
  let position = after
  let live = false
  let isOver = false
  let wake = () => {}
  stream.signal.addEventListener('abort', () => wake(), { once: true })

  function send(events: readonly FeedEvent[]) {
    const fresh = events.filter(({ entry }) => entry.seq > position)
    const text = following.render(fresh)
    if (text !== '') stream.send(text)
    position = fresh.at(-1)?.entry.seq ?? position
  }

  const stop = feed.subscribe((events) => {
    if (!live) return
    if (call.outgoing.writableNeedDrain || !isInTeam(desk, call) || ending?.isNear(events) === true) {
      live = false
      wake()
    } else send(events)
  })

  const stopNotices = following.notices?.((words) => {
    if (!stream.signal.aborted && !call.outgoing.writableNeedDrain) stream.send(words(position))
  })

  async function catchUp() {
    while (!stream.signal.aborted) {
      // Asked before the reading: what it had ended with is then among what is read.
      const lastWords = await ending?.lastWords()
      // Whatever was committed until now is in the store that is read next.
      const target = feed.latest()
      const page = await following.read(position)
      send(page)
      const isAll = page.length < PAGE
      if (isAll && lastWords !== undefined) {
        stream.send(lastWords(position))
        isOver = true
        return
      }
      if (isAll) position = Math.max(position, target)
      await stream.drained()
      // Nothing can be committed between this look and the change: no entry is missed or sent twice.
      live = position >= feed.latest()
      if (live) return
    }
  }

  try {
    while (!stream.signal.aborted && isInTeam(desk, call)) {
      await catchUp()
      if (isOver) return
      await new Promise<void>((resolve) => {
        wake = resolve
        if (!live || stream.signal.aborted) resolve()
      })
      await stream.drained()
    }
  } catch (error) {
    breakOff(desk, call.outgoing, error)
  } finally {
    stop()
    stopNotices?.()
    stream.end()
  }
}

/** A reload may have taken the reader out of the team. A revoked token ends the stream by itself. */
export function isInTeam({ engine }: Desk, { me, caller }: Pick<Call, 'me' | 'caller'>): boolean {
  const team = engine.team()
  return caller.principal.kind === 'agent'
    ? team.resolve(me) !== undefined
    : personBehind(team, caller.principal) !== undefined
}

/** The header is what a reconnecting reader sends by itself, and it is further on than the URL it began with. */
export function resumePoint({
  incoming,
  query,
}: Call<'events' | 'taskEvents' | 'runEvents'>): number | undefined {
  const header = incoming.headers['last-event-id']
  if (header === undefined || header === '') return query.after
  if (typeof header === 'string' && /^\d{1,15}$/.test(header)) return Number(header)
  throw new AppError('INVALID_REQUEST', 'The Last-Event-ID is no number of an event', {
    hint: 'Send the id of the last event you got, or leave the header out.',
  })
}

function notFromHere(after: number, head: number): AppError {
  return new AppError('CONFLICT', `There is no event ${after}: the last one is ${head}`, {
    hint: 'The id comes from another store. Connect without it to get the new events.',
  })
}
