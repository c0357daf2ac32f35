import { type SpentTotals, spentOnTask, spentOnTasks } from '../../agents/usage.ts'
import type { AnswerOf } from '../../api/contract.ts'
import {
  type ApiCall,
  type ApiContext,
  type RouteHandler,
  readableParties,
} from '../../api/handle-request.ts'
import type { ReadEntry } from '../../audit/store.ts'
import { AppError } from '../../base/errors.ts'
import { formatId, parseId } from '../../base/ids.ts'
import { isWithheld } from '../../commands/identity.ts'
import { mailOfTask, wireMail } from '../../messages/messages.ts'
import type { Reader, Store } from '../../store/store.ts'
import { descendantsOf } from '../core/snapshot.ts'
import { waitsFor } from '../core/waits-for.ts'
import { childrenOf, findTask, outlineOf, readTasks, treeOf } from '../store.ts'
import type { CheckResult, ClaimEvidence, Judge, Task, TaskClaim } from '../task.ts'

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
export async function visibleTask({ engine }: ApiContext, call: ApiCall): Promise<Task> {
  const id = call.params.id!
  const task = await findTask(engine.store, id)
  // The same error as for an unknown id, so others can't probe which tasks exist.
  if (task !== undefined && isVisible(task, readableParties(engine.team(), call))) return task
  throw new AppError('NOT_FOUND', `There is no task ${id.slice(0, 100)} for you`, {
    hint: '`orc tasks` lists them.',
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

export function wireTask(task: Task): TaskAnswer {
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

/** A task and all below it, including tasks that are delegated later. */
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

export async function openBranch(store: Store, top: Task): Promise<Branch> {
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
export async function spendingOf(reader: Reader, task: Task, isHidden: IsHidden): Promise<SpendingDetail> {
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
