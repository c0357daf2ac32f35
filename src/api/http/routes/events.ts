import { streamAudit, toEntry } from '../../../audit/store.ts'
import { type Desk, type RouteHandler, SENT } from '../call.ts'
import { type FeedEvent, feedEvent, mayKnow } from '../feed.ts'
import { follow, PAGE, resumePoint } from '../follow.ts'

/** The audit as it grows. */
export const streamEvents: RouteHandler<'events'> = async (desk, call) => {
  const { caller, me } = call
  await follow(desk, call, {
    after: resumePoint(call),
    read: (after) => readPage(desk, after),
    render: (events) =>
      events.reduce(
        (text, event) => (mayKnow(caller.principal, me, event.entry) ? text + event.text : text),
        '',
      ),
  })
  return SENT
}

/** All entries, and not only those the reader may know: looking for few among many would hold everyone up. */
async function readPage({ engine }: Desk, after: number): Promise<FeedEvent[]> {
  const page: FeedEvent[] = []
  for await (const row of streamAudit(engine.store, { after, limit: PAGE })) {
    page.push(feedEvent(toEntry(row)))
  }
  return page
}
