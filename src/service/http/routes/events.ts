import { AppError } from '../../../model/errors.ts'
import { readHead, streamAudit, toEntry } from '../../../store/audit-log.ts'
import { type Call, type Desk, type RouteHandler, SENT } from '../call.ts'
import { type EventStream, startEventStream } from '../event-stream.ts'
import { type FeedEvent, feedEvent, mayKnow } from '../feed.ts'
import { breakOff } from './deliveries.ts'

/** How much is read from the store at once for a reader that catches up. */
const PAGE = 500

/**
 * The audit as it grows. A reader is either live, and gets each commit as it happens, or behind, and is read to from
 * the store. It falls behind when its connection is full; nothing is ever kept for it in memory or dropped.
 */
export const streamEvents: RouteHandler<'events'> = async (desk, call) => {
  const { switchboard, feed, openCalls } = desk
  const head = (await readHead(switchboard.store, switchboard.store.daemon))?.seq ?? 0
  const after = resumePoint(call) ?? head
  if (after > head) throw notFromHere(after, head)
  const stream = startEventStream(call.outgoing, openCalls.open('events', call.caller, call.outgoing), after)
  let position = after
  let live = false
  let wake = () => {}
  stream.signal.addEventListener('abort', () => wake(), { once: true })

  const stop = feed.subscribe((events) => {
    if (!live) return
    if (call.outgoing.writableNeedDrain || !isInTeam(desk, call)) {
      live = false
      wake()
    } else position = sendVisible(stream, call, events, position)
  })

  async function catchUp() {
    while (!stream.signal.aborted) {
      // Whatever was committed until now is in the store that is read next.
      const target = feed.latest()
      const page = await readPage(desk, position)
      position = sendVisible(stream, call, page, position)
      if (page.length < PAGE) position = Math.max(position, target)
      await stream.drained()
      // Nothing can be committed between this look and the change: no entry is missed or sent twice.
      live = position >= feed.latest()
      if (live) return
    }
  }

  try {
    while (!stream.signal.aborted && isInTeam(desk, call)) {
      await catchUp()
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
    stream.end()
  }
  return SENT
}

/** All entries, and not only those the reader may know: looking for few among many would hold everyone up. */
async function readPage({ switchboard }: Desk, after: number): Promise<FeedEvent[]> {
  const page: FeedEvent[] = []
  for await (const row of streamAudit(switchboard.store, { after, limit: PAGE })) {
    page.push(feedEvent(toEntry(row)))
  }
  return page
}

function sendVisible(
  stream: EventStream,
  { caller, me }: Call,
  events: readonly FeedEvent[],
  position: number,
): number {
  let text = ''
  let last = position
  for (const event of events) {
    if (event.entry.seq <= position) continue
    last = event.entry.seq
    if (mayKnow(caller.principal, me, event.entry)) text += event.text
  }
  if (text !== '') stream.send(text)
  return last
}

/** A reload may have taken the reader out of the team. A revoked token ends the stream by itself. */
function isInTeam({ switchboard }: Desk, { me, isOperator }: Call): boolean {
  return isOperator || switchboard.team().resolve(me) !== undefined
}

/** The header is what a reconnecting reader sends by itself, and it is further on than the URL it began with. */
function resumePoint({ incoming, query }: Call<'events'>): number | undefined {
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
