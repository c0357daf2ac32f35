/** Questions of tasks to people: asking, withdrawing, and turning verdicts into task events. */
import { OPERATOR, ORCHESTRATOR } from '../base/agent.ts'
import { AppError } from '../base/errors.ts'
import { formatId, parseId } from '../base/ids.ts'
import type { HeldInTasks } from '../people/hold-command.ts'
import {
  addToNotice,
  askPeople,
  findHumanRequest,
  findOpenQuestion,
  type HumanRequestRow,
  lockTopic,
  questionContext,
  type RequestForm,
  withdrawHumanRequest,
} from '../people/people.ts'
import type { RequestOwner } from '../people/verdicts.ts'
import type { Tx } from '../store/store.ts'
import type { Timers } from '../store/timers.ts'
import type { TaskEvent, TaskStoreEffect } from './core/events-and-effects.ts'
import { refusalError } from './core/refusal.ts'
import { aboutTask, ownTask, taskAsking, taskOfRequest } from './references.ts'
import { findTask } from './store.ts'
import type { QuestionKind, Task } from './task.ts'
import type { TellTask } from './tell-task.ts'
import type { AgentTurn } from './watch-agents.ts'

type AskPerson = Extract<TaskStoreEffect, { type: 'ask_person' }>

/** The task's question that a request to people carries, in the column `context`. */
interface AskedQuestion {
  task: string
  question: string
}

function askedIn(row: HumanRequestRow): AskedQuestion {
  return JSON.parse(row.context) as AskedQuestion
}

export async function askPerson(
  tx: Tx,
  timers: Timers,
  task: Task,
  effect: AskPerson,
  cut: (text: string) => string,
): Promise<void> {
  const topic = isNotice(effect) ? topicOf(task, effect.reason) : undefined
  if (topic !== undefined && (await addToTopic(tx, task, { topic, reason: effect.reason }))) return
  const known = parseId('req', effect.question)
  const asks = task.questions.find(({ id }) => id === effect.question)?.kind
  const form: RequestForm = { ...effect.form, ...(asks === undefined ? {} : { asks }) }
  await askPeople(tx, {
    ...(known === undefined ? {} : { key: known }),
    kind: effect.kind,
    // An answer to a question that the task doesn't wait for comes as a message.
    purpose: isNotice(effect) ? 'notice' : effect.awaits ? 'task' : 'question',
    asker: task.agent,
    question: effect.text,
    reason: effect.reason,
    context: questionContext(task.id, effect.question),
    expiresAt: effect.expiresAt,
    timers,
    form,
    ...(topic === undefined ? {} : { topic }),
    text: `${cut(effect.text)} (${cut(effect.reason)})`,
    about: () => ({ awaits: effect.awaits, ...aboutTask(task) }),
  })
}

/** A notice informs people and needs no verdict. */
function isNotice({ kind, awaits }: AskPerson): boolean {
  return kind === 'escalation' && !awaits
}

/** The column `context` of a notice. */
interface NoticeContext extends AskedQuestion {
  /** The first tasks that the notice names. */
  tasks?: readonly string[]
}

/** Tasks that a notice names; `orc task list --all` lists the others. */
const MAX_NAMED = 20

/** Failures of one agent, from one delegator and for one cause share a notice. Numbers and ids don't make another cause. */
function topicOf({ delegator, agent }: Task, reason: string): string {
  const cause = reason.replace(/\d+/g, '#').slice(0, 500)
  return JSON.stringify([delegator, agent, cause])
}

/** Adds the task to the open notice on the topic, so thousands of equal failures make one notice. False if there is none. */
async function addToTopic(
  tx: Tx,
  task: Task,
  { topic, reason }: { topic: string; reason: string },
): Promise<boolean> {
  const notice = await lockTopic(tx, topic)
  if (notice === undefined) return false
  const context = JSON.parse(notice.context) as NoticeContext
  const { tasks = [context.task] } = context
  const count = notice.count + 1
  const named = tasks.length < MAX_NAMED ? [...tasks, task.id] : tasks
  const more = count > named.length ? ` and ${count - named.length} more` : ''
  addToNotice(tx, notice.id, {
    question: `${count} tasks of ${task.agent} ${task.state}: ${reason} (${named.join(', ')}${more})`,
    context: JSON.stringify({ ...context, tasks: named } satisfies NoticeContext),
  })
  const id = formatId('req', notice.id)
  tx.audit({
    type: 'human.gathered',
    class: 'internal',
    actor: task.agent,
    text: `${id} now includes ${task.id}: ${count} tasks so far`,
    data: { request_id: id, kind: notice.kind, count, ...aboutTask(task) },
  })
  return true
}

/**
 * Closes the request of a question that the task no longer needs. Returns it if it held a command: the command must not
 * run for a cancelled task, or twice for a retried one. A command held by a completed task stays for people to decide.
 */
export async function withdrawRequest(
  tx: Tx,
  task: Task,
  question: string,
): Promise<{ id: string; question: string } | undefined> {
  const held = await findHeldCommand(tx, question)
  if (held !== undefined && task.state === 'completed') return undefined
  const row = held ?? (await findOpenQuestion(tx, task.id, question))
  if (row === undefined) return undefined
  const data = { kind: row.kind, ...aboutTask(task) }
  const id = await withdrawHumanRequest(tx, row, { why: row.question, subject: row.asker, data })
  return held === undefined || id === undefined ? undefined : { id, question: row.question }
}

async function findHeldCommand(tx: Tx, question: string): Promise<HumanRequestRow | undefined> {
  const key = parseId('req', question)
  const row = key === undefined ? undefined : await findHumanRequest(tx, key)
  return row?.state === 'open' && row.purpose === 'command' ? row : undefined
}

type TaskVerdict = Parameters<RequestOwner['decided']>[2]

/** Continues tasks whose questions people have answered. */
export function taskRequestOwner(tell: TellTask): RequestOwner {
  return {
    about: async (tx, row) => ({ ...(await taskOfRequest(tx, { ...row, id: formatId('req', row.id) })) }),

    /** Throws an AppError for a verdict that doesn't fit, so nothing of it is stored. */
    async decided(tx, row, verdict) {
      const { task: id, question } = askedIn(row)
      const kind = (await findTask(tx, id))?.questions.find((one) => one.id === question)?.kind
      if (kind === undefined) {
        throw new AppError('CONFLICT', `${id} no longer needs this decision`, {
          hint: `See its state: orc task show ${id}`,
        })
      }
      const change = await tell(tx, id, eventOf(row, kind, verdict))
      if (!change.ok) throw refusalError(change.error)
      return `${id} continues`
    },

    async expired(tx, row) {
      const { task, question } = askedIn(row)
      await tell(tx, task, { type: 'question_expired', question })
    },
  }
}

/** Lets a task wait for the verdict on a command that its worker sent. */
export function heldInTasks(tasks: { tell: TellTask; turnOf(agent: string): AgentTurn }): HeldInTasks {
  return {
    async taskOf(context) {
      const task = await ownTask(tasks, context, undefined)
      return (task.ok && task.value?.id) || null
    },
    async onHeld(tx, task, held) {
      await tasks.tell(tx, task, { type: 'approval_asked', ...held })
    },
    async onDecided(tx, row, verdict, text) {
      const question = formatId('req', row.id)
      const task = await taskAsking(tx, { ...row, id: question })
      if (task === undefined) return false
      const by = verdict === 'expired' ? ORCHESTRATOR : OPERATOR
      const decided = { type: 'approval_decided', by, question, verdict, text } as const
      return (await tasks.tell(tx, task.id, decided)).ok
    },
    about: async (tx, request) => ({ ...(await taskOfRequest(tx, request)) }),
  }
}

/** Translates a verdict into an event of the task that asked. Throws if the verdict doesn't fit the question. */
function eventOf(row: HumanRequestRow, kind: QuestionKind, verdict: TaskVerdict): TaskEvent {
  const { question } = askedIn(row)
  const { decision, comment } = verdict
  const by = OPERATOR
  if (decision === 'answer') {
    const answer = comment ?? ''
    if (kind === 'extension') {
      throw wrongVerdict(row, 'a yes or a no', 'Use `orc approve ID` or `orc reject ID`.')
    }
    if (kind !== 'takeover') return { type: 'answered', by, question, answer }
    return { type: 'reported', by, report: formatId('req', row.id), status: 'completed', result: answer }
  }
  if (kind === 'extension') {
    return decision === 'approve'
      ? { type: 'extension_granted', by, question }
      : { type: 'extension_refused', by, question, reason: comment ?? 'a person refused' }
  }
  if (kind !== 'help' && !(kind === 'takeover' && decision === 'reject')) {
    throw wrongVerdict(row, 'an answer', 'Use `orc answer ID TEXT`.')
  }
  return decision === 'approve'
    ? { type: 'settled', by, as: 'completed', reason: comment ?? 'a person accepted it' }
    : { type: 'settled', by, as: 'failed', reason: comment ?? 'a person gave up on it' }
}

function wrongVerdict(row: HumanRequestRow, what: string, hint: string): AppError {
  return new AppError('CONFLICT', `${formatId('req', row.id)} needs ${what}`, { hint })
}
