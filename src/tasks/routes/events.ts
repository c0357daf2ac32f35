import { feedEvent } from '../../api/audit-feed.ts'
import type { TaskStreamEvent } from '../../api/contract.ts'
import { type RouteHandler, readableParties, SENT } from '../../api/handle-request.ts'
import { formatEvent } from '../../api/sse.ts'
import { FEED_PAGE, resumePoint, streamFeed } from '../../api/stream-feed.ts'
import { type ReadEntry, readTree } from '../../audit/store.ts'
import { parseId } from '../../base/ids.ts'
import { deliveriesOfTree } from '../../messages/messages.ts'
import { HUMAN_REQUEST_STATES } from '../../people/human-request.ts'
import { findTask, treeOf } from '../store.ts'
import { isEnd, type Task } from '../task.ts'
import { openBranch, visibleTask, wireTask } from './tasks.ts'

/** Streams the events of a task and all below it, from its beginning to its end. */
export const streamTask: RouteHandler<'taskEvents'> = async (context, call) => {
  const { store, team } = context.engine
  const task = await visibleTask(context, call)
  const branch = await openBranch(store, task)
  const root = parseId('task', task.root)!
  await streamFeed(context, call, {
    after: resumePoint(call) ?? 0,
    read: async (after) => (await readTree(store, root, { after, limit: FEED_PAGE })).map(feedEvent),
    render(events) {
      const parties = readableParties(team(), call)
      let text = ''
      for (const { entry } of events) {
        if (!branch.includes(entry, parties)) continue
        const event = taskEventOf(entry, task.root)
        text += formatEvent(event.type, event.seq, JSON.stringify(event))
      }
      return text
    },
    ending: {
      isNear: (events) =>
        events.some(({ entry }) => entry.data?.task_id === task.id && isEndEntry(entry.type)),
      async finalEvent() {
        const ended = await findTask(store, task.id)
        if (ended === undefined || !isEnd(ended.state)) return undefined
        return (position) => formatEvent('end', position, JSON.stringify(endOf(ended, position)))
      },
    },
  })
  return SENT
}

const END_ENTRIES = new Set(['task.completed', 'task.failed', 'task.cancelled', 'task.skipped'])

function isEndEntry(type: string): boolean {
  return END_ENTRIES.has(type)
}

/** Translates an audit entry about the tree of `root`. The engine wrote the entry's data, so it is trusted. */
function taskEventOf(entry: ReadEntry, root: string): TaskStreamEvent {
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

/** Audit entries per read. */
const TRACE_PAGE = 1000

/** Everything that happened for a task, in order (S2.18). */
export const traceTask: RouteHandler<'trace'> = async (context, call) => {
  const { store, team } = context.engine
  const top = await visibleTask(context, call)
  const root = parseId('task', top.root)!
  const branch = await openBranch(store, top)
  const parties = readableParties(team(), call)
  const { limit } = call.query
  const steps: TaskStreamEvent[] = []
  let isMore = false
  for (let after = 0; !isMore; ) {
    const page = await readTree(store, root, { after, limit: TRACE_PAGE })
    for (const entry of page) {
      if (!branch.includes(entry, parties)) continue
      isMore = steps.length === limit
      if (isMore) break
      steps.push(taskEventOf(entry, top.root))
    }
    if (page.length < TRACE_PAGE) break
    after = page.at(-1)!.seq
  }
  const deliveries = new Map((await deliveriesOfTree(store, root)).map((one) => [one.id, one]))
  const tasks = (await treeOf(store, top.root)).filter((task) => branch.has(task.id, parties))
  return {
    task: wireTask(top),
    tasks: tasks.map(wireTask),
    steps: steps.map((step) => {
      const found = step.type === 'message' ? deliveries.get(step.message_id) : undefined
      return found === undefined ? step : { ...step, delivery: found.state, attempts: found.attempts }
    }),
    more: isMore,
  }
}
