import { wireMail } from '../../../engine/mail.ts'
import { AppError } from '../../../model/errors.ts'
import { parseId } from '../../../model/identifier.ts'
import type { Task } from '../../../model/task.ts'
import { mailOfTask } from '../../../store/messages.ts'
import { childrenOf, findTask, readTasks } from '../../../store/tasks.ts'
import type { AnswerOf } from '../../contract.ts'
import type { RouteHandler } from '../call.ts'
import { readableParties } from '../permission.ts'

type Wire = AnswerOf<'tasks'>['tasks'][number]

export const listTasks: RouteHandler<'tasks'> = async ({ switchboard }, call) => {
  const parties = readableParties(switchboard.team(), call)
  const tasks = await readTasks(switchboard.store, call.query.state, call.query.limit)
  return { tasks: tasks.filter((task) => isFor(task, parties)).map(wireTask) }
}

export const showTask: RouteHandler<'task'> = async ({ switchboard }, call) => {
  const { store } = switchboard
  const id = call.params.id!
  const task = await findTask(store, id)
  const parties = readableParties(switchboard.team(), call)
  // Whether it is there is nobody else's business either.
  if (task === undefined || !isFor(task, parties)) {
    throw new AppError('NOT_FOUND', `There is no task ${id.slice(0, 100)} for you`, {
      hint: '`orc tasks` lists them.',
    })
  }
  const children = await childrenOf(store, task.id)
  const messages = await mailOfTask(store, parseId('task', task.id)!)
  return {
    ...wireTask(task),
    context: { ...task.context },
    checks: [...task.checks],
    evidence: task.evidence.map((one) => ({ ...one })),
    questions: task.questions.map(({ id: question, kind, to, text }) => ({ id: question, kind, to, text })),
    children: children.map(wireTask),
    messages: messages.map((mail) => wireMail(mail) as AnswerOf<'task'>['messages'][number]),
  }
}

function isFor({ delegator, agent }: Task, parties: readonly string[] | 'all'): boolean {
  return parties === 'all' || parties.includes(delegator) || parties.includes(agent)
}

function wireTask(task: Task): Wire {
  const iso = (at: number) => new Date(at).toISOString()
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

/** On whom, and for what: the first thing one asks of a task that stands still. */
function waitsFor(task: Task): string[] {
  if (task.endedAt !== null) return []
  if (task.held !== null) return [`${task.held.by} to release it: ${task.held.reason}`]
  const questions = task.questions.map(({ id, kind, to, text }) => `${to} to answer ${id} (${kind}): ${text}`)
  const children = task.awaiting.map((id) => `${id} to end`)
  if (questions.length + children.length > 0) return [...questions, ...children]
  if (task.claim !== null) return [task.claim.step === 'checks' ? 'its checks' : 'the judge']
  if (task.due?.kind === 'retry') return ['the next attempt']
  return [task.state === 'pending' ? `${task.agent} to take it` : `${task.agent} to report`]
}
