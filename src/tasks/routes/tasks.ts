import type { SpentTotals } from '../../agents/usage.ts'
import type { AnswerOf } from '../../api/contract.ts'
import type { ApiCall, ApiContext, RouteHandler } from '../../api/http/call.ts'
import { isWithheld, readableParties } from '../../api/http/permission.ts'
import { AppError } from '../../base/errors.ts'
import { parseId } from '../../base/ids.ts'
import { mailOfTask, wireMail } from '../../messages/messages.ts'
import { childrenOf, findTask, readTasks } from '../store/tasks.ts'
import type { CheckResult, Evidence, Task, TaskClaim } from '../task.ts'
import { isVisible } from './branch.ts'
import { spendingOf, spentOn } from './spending.ts'

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
    isWithheld(team(), call, agent)

const iso = (at: number) => new Date(at).toISOString()

function withSpent(task: Task, known: ReadonlyMap<string, SpentTotals>): TaskAnswer {
  const spent = known.get(task.id)
  return { ...wireTask(task), ...(spent === undefined ? {} : { spent }) }
}

function wireClaim({ number, step, result }: TaskClaim) {
  return { number, step, result }
}

function wireEvidence({ findings, at, ...evidence }: Evidence): TaskDetail['evidence'][number] {
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

/** Lists the waits of a task. */
function waitsFor(task: Task): string[] {
  if (task.endedAt !== null) return []
  if (task.held !== null) return [`${task.held.by} to release it: ${task.held.reason}`]
  const questions = task.questions.map((one) => `${one.to} to ${actionOn(one)}: ${one.text}`)
  const children = task.awaiting.map((id) => `${id} to end`)
  if (questions.length + children.length > 0) return [...questions, ...children]
  if (task.claim !== null) return [validationOf(task, task.claim)]
  if (task.due?.kind === 'retry') return ['the next attempt']
  return [task.state === 'pending' ? `${task.agent} to take it` : `${task.agent} to report`]
}

/** A request for help has no id to name; the task's id is enough. */
function actionOn({ id, kind }: Task['questions'][number]): string {
  switch (kind) {
    case 'query':
    case 'user':
      return `answer ${id}`
    case 'approval':
    case 'extension':
      return `decide on ${id}`
    case 'help':
      return 'help or decide'
    case 'takeover':
      return 'finish it'
  }
}

function validationOf({ checks, judge }: Task, { number, step }: TaskClaim): string {
  const by = step === 'checks' ? `its checks (${checks.join(', ')})` : (judge?.name ?? 'nobody')
  return `${by} to validate claim ${number}`
}
