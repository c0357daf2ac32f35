import type { RunEvent } from '../../api/contract.ts'
import type { ReadEntry } from '../../audit/store.ts'
import type { RunHead } from '../run.ts'

type EventOf<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

interface Data
  extends Partial<Omit<EventOf<'node'>, 'type' | 'seq' | 'at'>>,
    Partial<Pick<EventOf<'progress'>, 'step' | 'done' | 'total'>>,
    Partial<Pick<EventOf<'asked'>, 'request_id' | 'awaits'>>,
    Partial<Pick<EventOf<'begun'>, 'round' | 'agents'>> {
  run_id?: string
}

/** What an audit entry about a run says to its readers. The entry's data was written by the engine. */
export function runEventOf({ seq, at, type, text, data: said }: ReadEntry): RunEvent {
  const data = (said ?? {}) as Data
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
    case 'human.told':
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

/** What is told of it besides what is stored. */
export function noticeOfRun(id: string, text: string, seq: number, now: number): EventOf<'note'> {
  return { type: 'note', seq, at: new Date(now).toISOString(), run_id: id, text: `${id}: ${text}` }
}

/** The last word on a round of a run. */
export function endOfRun({ id, outcome, round, endedAt }: RunHead, seq: number): EventOf<'end'> {
  const at = new Date(endedAt!).toISOString()
  return { type: 'end', seq, at, run_id: id, text: `${id} ended: ${outcome}`, outcome: outcome!, round }
}
