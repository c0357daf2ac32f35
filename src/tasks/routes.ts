import { type SpentTotals, spentOnTask, spentOnTasks } from '../agents/usage-and-limits.ts'
import { feedEvent } from '../api/audit-feed.ts'
import type { AnswerOf, TaskStreamEvent } from '../api/contract.ts'
import {
  type ApiCall,
  type ApiContext,
  type RouteHandler,
  readableParties,
  SENT,
} from '../api/handle-request.ts'
import { formatEvent } from '../api/sse.ts'
import { FEED_PAGE, resumePoint, streamFeed } from '../api/stream-feed.ts'
import { type ReadEntry, readTree } from '../audit/store.ts'
import { AppError } from '../base/errors.ts'
import { formatId, parseId } from '../base/ids.ts'
import { isWithheld } from '../commands/identity.ts'
import { deliveriesOfTree, mailOfTask, wireMail } from '../messages/messages.ts'
import { HUMAN_REQUEST_STATES } from '../people/human-request.ts'
import type { Reader, Store } from '../store/store.ts'
import { descendantsOf } from './core/snapshot.ts'
import { waitsFor } from './core/waits-for.ts'
import { childrenOf, findTask, outlineOf, readTasks, treeOf } from './store.ts'
import { type CheckResult, type ClaimEvidence, isEnd, type Judge, type Task, type TaskClaim } from './task.ts'

type TaskAnswer = AnswerOf<'tasks'>['tasks'][number]
type TaskDetail = AnswerOf<'task'>

export const listTasks: RouteHandler<'tasks'> = async ({ engine }, call) => {
  const parties = readableParties(engine.team(), call)
  const { state: which, limit } = call.query
  const tasks = await readTasks(engine.store, { which, parties, limit })
  const spent = await spentOn(engine.store, tasks, hiddenFrom(engine, call))
  return { tasks: tasks.map((task) => withSpent(task, spent)) }
}

/** The task of the path, if the caller may see it. */
async function visibleTask({ engine }: ApiContext, call: ApiCall): Promise<Task> {
  const id = call.params.id!
  const task = await findTask(engine.store, id)
  // The same error as for an unknown id, so others can't probe which tasks exist.
  if (task !== undefined && isVisible(task, readableParties(engine.team(), call))) return task
  throw new AppError('NOT_FOUND', `There is no task ${id.slice(0, 100)} for you`, {
    hint: '`orc task list` lists them.',
  })
}

export const showTask: RouteHandler<'task'> = async (context, call) => {
  const { store } = context.engine
  const task = await visibleTask(context, call)
  const parties = readableParties(context.engine.team(), call)
  const children = (await childrenOf(store, task.id)).filter((child) => isVisible(child, parties))
  const isHidden = hiddenFrom(context.engine, call)
  const spent = await spentOn(store, children, isHidden)
  const messages = await mailOfTask(store, parseId('task', task.id)!)
  return {
    ...wireTask(task),
    context: { ...task.context },
    checks: [...task.checks],
    ...(task.judge === null ? {} : { judge: task.judge }),
    ...(task.resultSchema === null ? {} : { result_schema: { ...task.resultSchema } }),
    attempts: task.failures.map((failed) => ({ ...failed, at: iso(failed.at) })),
    ...(task.claim === null ? {} : { claim: wireClaim(task.claim) }),
    evidence: task.evidence.map(wireEvidence),
    ...(await spendingOf(store, task, isHidden)),
    questions: task.questions.map(({ id: question, kind, to, text }) => ({ id: question, kind, to, text })),
    children: children.map((child) => withSpent(child, spent)),
    messages: messages.map((mail) => wireMail(mail) as AnswerOf<'task'>['messages'][number]),
  }
}

const hiddenFrom =
  ({ team }: ApiContext['engine'], call: Pick<ApiCall, 'caller'>) =>
  (agent: string) =>
    isWithheld(team(), call.caller.principal, agent)

const iso = (at: number) => new Date(at).toISOString()

function withSpent(task: Task, known: ReadonlyMap<string, SpentTotals>): TaskAnswer {
  const spent = known.get(task.id)
  return { ...wireTask(task), ...(spent === undefined ? {} : { spent }) }
}

function wireClaim({ number, step, result }: TaskClaim) {
  return { number, step, result }
}

function wireEvidence({ findings, at, ...evidence }: ClaimEvidence): TaskDetail['evidence'][number] {
  const { checks, ...version } = findings ?? {}
  return {
    ...evidence,
    at: iso(at),
    ...version,
    ...(checks === undefined ? {} : { checks: checks.map(wireCheck) }),
  }
}

function wireCheck({ exitCode, ...check }: CheckResult) {
  return { ...check, ...(exitCode === null ? {} : { exit_code: exitCode }) }
}

function wireTask(task: Task): TaskAnswer {
  return {
    id: task.id,
    root: task.root,
    delegator: task.delegator,
    agent: task.agent,
    task: task.text,
    state: task.state,
    attempt: task.attempt,
    max_attempts: task.maxAttempts,
    created_at: iso(task.createdAt),
    waits_for: waitsFor(task),
    ...(task.parent === null ? {} : { parent: task.parent }),
    ...(task.due === null ? {} : { due: { kind: task.due.kind, at: iso(task.due.at) } }),
    ...(task.endedAt === null ? {} : { ended_at: iso(task.endedAt) }),
    ...(task.result === null ? {} : { result: task.result }),
    ...(task.reason === null ? {} : { reason: task.reason }),
  }
}

/** A task and its subtasks, including those that are delegated later. */
interface Branch {
  /** Whether an entry belongs to a task of the branch that these parties may see, or to a halt during it. */
  includes(entry: ReadEntry, parties: readonly string[] | 'all'): boolean
  has(task: string, parties: readonly string[] | 'all'): boolean
}

interface TaskParties {
  delegator: string
  agent: string
  judge?: Judge | null
}

/** Visible to delegator, worker and the agent that judges. */
function isVisible({ delegator, agent, judge }: TaskParties, parties: readonly string[] | 'all'): boolean {
  if (parties === 'all' || parties.includes(delegator) || parties.includes(agent)) return true
  return judge?.kind === 'agent' && parties.includes(judge.name)
}

async function openBranch(store: Store, top: Task): Promise<Branch> {
  const members = new Map<string, TaskParties>([[top.id, top]])
  // Parents come before their children.
  for (const { id, parent, delegator, agent } of await outlineOf(store, parseId('task', top.root)!)) {
    if (parent !== null) add(formatId('task', id), formatId('task', parent), { delegator, agent })
  }

  function add(id: string, parent: unknown, parties: TaskParties) {
    if (typeof parent === 'string' && members.has(parent)) members.set(id, parties)
  }

  function has(task: string, parties: readonly string[] | 'all'): boolean {
    const member = members.get(task)
    return member !== undefined && isVisible(member, parties)
  }

  return {
    has,
    includes({ type, data, at, class: privacy }, parties) {
      if (type === 'team.halted' || type === 'team.resumed') return isBefore(top.endedAt, at)
      if (privacy === 'private' && parties !== 'all') return false
      if (data?.root !== top.root || typeof data.task_id !== 'string') return false
      const { task_id, parent, delegator, agent } = data
      if (type === 'task.delegated')
        add(task_id, parent, { delegator: String(delegator), agent: String(agent) })
      return has(task_id, parties)
    },
  }
}

function isBefore(endedAt: number | null, at: string): boolean {
  return endedAt === null || Date.parse(at) <= endedAt
}

type SpendingDetail = Pick<AnswerOf<'task'>, 'spent' | 'spending' | 'spent_below'>

const keysOf = (tasks: readonly Task[]) => tasks.map(({ id }) => parseId('task', id)!).sort((a, b) => a - b)

/** Agents whose spending the caller may not see: the cost of a text shows how much an agent said about it (S3.15). */
type IsHidden = (agent: string) => boolean

/** Spending by task id. */
async function spentOn(
  reader: Reader,
  tasks: readonly Task[],
  isHidden: IsHidden,
): Promise<Map<string, SpentTotals>> {
  const rows = await spentOnTasks(reader, keysOf(tasks.filter(({ agent }) => !isHidden(agent))))
  return new Map(rows.map(({ task, ...spent }) => [formatId('task', task), spent]))
}

/** Spending on one task by agent, and on all tasks below it. */
async function spendingOf(reader: Reader, task: Task, isHidden: IsHidden): Promise<SpendingDetail> {
  const all = isHidden(task.agent) ? [] : await spentOnTask(reader, parseId('task', task.id)!)
  const spending = all.filter(({ agent }) => !isHidden(agent))
  const below = task.delegations === 0 ? [] : descendantsOf(await treeOf(reader, task.root), task.id)
  const spent = sumOf(spending)
  const seen = isHidden(task.agent) ? [] : below.filter(({ agent }) => !isHidden(agent))
  const spentBelow = sumOf(await spentOnTasks(reader, keysOf(seen)))
  return {
    spending,
    ...(spent === undefined ? {} : { spent }),
    ...(spentBelow === undefined ? {} : { spent_below: spentBelow }),
  }
}

const SUMMED = ['answers', 'input', 'output', 'cache_read', 'cache_write', 'cost', 'unpriced'] as const

function sumOf(rows: readonly SpentTotals[]): SpentTotals | undefined {
  if (rows.length === 0) return undefined
  const sums = SUMMED.map((key) => [key, rows.reduce((sum, row) => sum + row[key], 0)])
  return Object.fromEntries(sums) as SpentTotals
}

// ── Events ───────────────────────────────────────────────────────────────────────────────────────

/** Streams the events of a task and its subtasks until the task ends. */
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
        events.some(({ entry }) => entry.data?.task_id === task.id && END_ENTRIES.has(entry.type)),
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
function endOf(task: Task, seq: number): StreamEventOf<'end'> {
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
