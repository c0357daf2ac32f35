import type { TaskStreamEvent } from '../../api/contract.ts'
import type { ReadEntry } from '../../audit/store.ts'
import { HUMAN_REQUEST_STATES } from '../../people/human-request.ts'
import type { Task } from '../task.ts'

/** Translates an audit entry about the tree of `root`. The engine wrote the entry's data, so it is trusted. */
export function taskEventOf(entry: ReadEntry, root: string): TaskStreamEvent {
  const { seq, at, actor, subject, type } = entry
  const data = (entry.data ?? {}) as EntryData
  const about = { seq, at, task_id: data.task_id ?? root }
  const text = (prefix: string) =>
    entry.text.startsWith(prefix) ? entry.text.slice(prefix.length) : entry.text
  switch (type) {
    case 'task.selected': {
      const { agent, chosen, why, by, unknown, root_why } = data
      const base = { agent: agent!, chosen: chosen!, why: why!, by: by!, unknown: unknown! }
      return { type: 'selected', ...about, ...base, ...(root_why === undefined ? {} : { root_why }) }
    }
    case 'task.delegated': {
      const to = data.agent!
      return {
        type: 'delegated',
        ...about,
        ...(data.parent ? { parent: data.parent } : {}),
        from: data.delegator!,
        to,
        text: text(`${about.task_id} for ${to}: `),
      }
    }
    case 'task.evidence': {
      const { agent, step, outcome, excerpt } = data
      return { type: 'evidence', ...about, agent: agent!, step: step!, outcome: outcome!, text: excerpt! }
    }
    case 'team.halted':
    case 'team.resumed':
      return { type: 'halt', ...about, over: type === 'team.resumed', by: actor, text: entry.text }
    case 'task.noted':
      return { type: 'note', ...about, text: text(`${about.task_id}: `) }
    case 'message.accepted':
      return {
        type: 'message',
        ...about,
        message_id: data.message_id!,
        from: actor,
        to: subject!,
        kind: data.kind as MessageEntry['kind'],
        text: data.excerpt!,
      }
    case 'human.asked':
      return {
        type: 'asked',
        ...about,
        request_id: data.request_id!,
        kind: (data.kind ?? 'escalation') as AskedEntry['kind'],
        from: subject ?? actor,
        text: text(`${data.request_id}: `),
        awaits: data.awaits ?? true,
      }
  }
  if (type === `task.${data.state}` && data.agent !== undefined) {
    const { agent, state, attempt } = data
    return { type: 'state', ...about, agent, state: state!, attempt: attempt!, text: entry.text }
  }
  const { request_id } = data
  const verdict = VERDICTS.find((state) => type === `human.${state}`)
  if (verdict !== undefined && request_id !== undefined) {
    return {
      type: 'verdict',
      ...about,
      request_id,
      verdict,
      by: actor,
      ...(subject === undefined ? {} : { to: subject }),
      text: data.comment ?? '',
    }
  }
  return { type: 'note', ...about, text: entry.text, ...(request_id === undefined ? {} : { request_id }) }
}

const VERDICTS = HUMAN_REQUEST_STATES.filter((state) => state !== 'open')

type StreamEventOf<T extends TaskStreamEvent['type']> = Extract<TaskStreamEvent, { type: T }>
type MessageEntry = StreamEventOf<'message'>
type AskedEntry = StreamEventOf<'asked'>

interface EntryData extends Partial<Omit<StreamEventOf<'selected'>, 'type' | 'seq' | 'at'>> {
  root?: string
  parent?: string | null
  delegator?: string
  state?: Task['state']
  attempt?: number
  step?: string
  outcome?: string
  excerpt?: string
  message_id?: string
  kind?: string
  request_id?: string
  awaits?: boolean
  comment?: string
}

/** The last event of a stream, with the whole result. */
export function endOf(task: Task, seq: number): StreamEventOf<'end'> {
  const { id, agent, state, endedAt, result, reason } = task
  return {
    type: 'end',
    seq,
    at: new Date(endedAt!).toISOString(),
    task_id: id,
    agent,
    state,
    ...(result === null ? {} : { result }),
    ...(reason === null ? {} : { reason }),
  }
}
