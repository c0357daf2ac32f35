import { type RouteHandler, SENT } from '../../api/http/call.ts'
import { formatEvent } from '../../api/http/event-stream.ts'
import { feedEvent } from '../../api/http/feed.ts'
import { follow, PAGE, resumePoint } from '../../api/http/follow.ts'
import { lastOfRun, readRunEntries } from '../../audit/store.ts'
import { parseId } from '../../base/ids.ts'
import { readRunHead } from '../store/runs.ts'
import { endOfRun, noticeOfRun, runEventOf } from './run-event.ts'
import { namedRun } from './runs.ts'

/** What happens in a run, to its end: when its report is written, so that whoever waits finds all in place. */
export const streamRun: RouteHandler<'runEvents'> = async (desk, call) => {
  const { store, runs, clock } = desk.engine
  const { id } = await namedRun(desk, call)
  const key = parseId('run', id)!
  const begun = call.query.round === 'all' ? 0 : await lastOfRun(store, key, 'run.begun')
  await follow(desk, call, {
    after: resumePoint(call) ?? Math.max(0, begun - 1),
    read: async (after) => (await readRunEntries(store, key, { after, limit: PAGE })).map(feedEvent),
    render(events) {
      let text = ''
      for (const { entry } of events) {
        if (entry.data?.run_id !== id) continue
        const event = runEventOf(entry)
        text += formatEvent(event.type, event.seq, JSON.stringify(event))
      }
      return text
    },
    // While the disk is full nothing can be stored, and so nothing else would be heard.
    notices(say) {
      const tell = (text: string) =>
        say((position) => {
          const notice = noticeOfRun(id, text, position, clock.now())
          return formatEvent(notice.type, position, JSON.stringify(notice))
        })
      const now = runs.troubles().find(({ run }) => run === id)
      if (now !== undefined) tell(now.text)
      return runs.onTrouble((run, text) => {
        if (run === id) tell(text ?? 'it goes on')
      })
    },
    ending: {
      isNear: (events) =>
        events.some(({ entry }) => entry.type === 'run.reported' && entry.data?.run_id === id),
      async lastWords() {
        const head = await readRunHead(store, id)
        if (head === undefined || head.outcome === null || head.reportOwed) return undefined
        return (position) => formatEvent('end', position, JSON.stringify(endOfRun(head, position)))
      },
    },
  })
  return SENT
}
