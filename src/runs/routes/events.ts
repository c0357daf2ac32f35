import type { RunUpdate } from '../../api/contract.ts'
import { type RouteHandler, SENT } from '../../api/http/call.ts'
import { feedEvent, formatEvent } from '../../api/http/event-streams.ts'
import { follow, PAGE, resumePoint } from '../../api/http/follow.ts'
import { lastOfRun, type ReadEntry, readRunEntries } from '../../audit/store.ts'
import { parseId } from '../../base/ids.ts'
import type { RunHead } from '../run.ts'
import { readRunHead } from '../store.ts'
import { namedRun } from './runs.ts'

/** Streams the events of a run until its report is written. */
export const streamRun: RouteHandler<'runEvents'> = async (context, call) => {
  const { store, runs, clock } = context.engine
  const { id } = await namedRun(context, call)
  const key = parseId('run', id)!
  const begun = call.query.round === 'all' ? 0 : await lastOfRun(store, key, 'run.begun')
  await follow(context, call, {
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
    // A full disk allows no stored events, so send a notice.
    notices(say) {
      const tell = (text: string) =>
        say((position) => {
          const notice = noticeOfRun(id, text, position, clock.now())
          return formatEvent(notice.type, position, JSON.stringify(notice))
        })
      const now = runs.troubles().find(({ run }) => run === id)
      if (now !== undefined) tell(now.text)
      return runs.onTrouble((run, text) => {
        if (run === id) tell(text ?? 'the run continues')
      })
    },
    ending: {
      isNear: (events) =>
        events.some(({ entry }) => entry.type === 'run.reported' && entry.data?.run_id === id),
      async finalEvent() {
        const head = await readRunHead(store, id)
        if (head === undefined || head.outcome === null || head.reportOwed) return undefined
        return (position) => formatEvent('end', position, JSON.stringify(endOfRun(head, position)))
      },
    },
  })
  return SENT
}

type WireEventOf<T extends RunUpdate['type']> = Extract<RunUpdate, { type: T }>

interface RunEntryData
  extends Partial<Omit<WireEventOf<'node'>, 'type' | 'seq' | 'at'>>,
    Partial<Pick<WireEventOf<'progress'>, 'step' | 'done' | 'total'>>,
    Partial<Pick<WireEventOf<'asked'>, 'request_id' | 'awaits'>>,
    Partial<Pick<WireEventOf<'begun'>, 'round' | 'agents'>> {
  run_id?: string
}

/** Converts an audit entry about a run into an event. The engine wrote its data. */
export function runEventOf({ seq, at, type, text, data: said }: ReadEntry): RunUpdate {
  const data = (said ?? {}) as RunEntryData
  const about = { seq, at, run_id: data.run_id!, text }
  const { node } = data
  switch (type) {
    case 'run.begun':
      return { type: 'begun', ...about, round: data.round!, agents: data.agents! }
    case 'run.node': {
      const { state, attempt, cached, reason } = data
      return {
        type: 'node',
        ...about,
        node: node!,
        state: state!,
        attempt: attempt!,
        ...(cached === undefined ? {} : { cached }),
        ...(reason === undefined ? {} : { reason }),
      }
    }
    case 'run.progress': {
      const { attempt, step, done, total } = data
      return {
        type: 'progress',
        ...about,
        node: node!,
        attempt: attempt!,
        step: step!,
        done: done!,
        total: total!,
      }
    }
    case 'human.asked':
      return {
        type: 'asked',
        ...about,
        node: node!,
        request_id: data.request_id!,
        awaits: data.awaits ?? true,
      }
    default:
      return { type: 'note', ...about, ...(node === undefined ? {} : { node }) }
  }
}

/** An event that is not stored. */
function noticeOfRun(id: string, text: string, seq: number, now: number): WireEventOf<'note'> {
  return { type: 'note', seq, at: new Date(now).toISOString(), run_id: id, text: `${id}: ${text}` }
}

/** The last event of a round. */
export function endOfRun({ id, outcome, round, endedAt }: RunHead, seq: number): WireEventOf<'end'> {
  const at = new Date(endedAt!).toISOString()
  return { type: 'end', seq, at, run_id: id, text: `${id} ended: ${outcome}`, outcome: outcome!, round }
}
