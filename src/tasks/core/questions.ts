/** Questions of a task to its parent, a child or people, and the answers to them. */
import { OPERATOR, ORCHESTRATOR } from '../../base/agent.ts'
import { isEnd, type QuestionKind, type Task, type TaskQuestion } from '../task.ts'
import type { TaskStoreEffect } from './events-and-effects.ts'
import { noAnswerText } from './message-texts.ts'
import { type RefusedEvent, refuse } from './refusal.ts'
import type { TaskSnapshot } from './snapshot.ts'
import {
  type Accepted,
  accept,
  end,
  prepend,
  sendToWorker,
  started,
  type TaskEventHandlers,
  updateState,
  withdrawAll,
} from './task-changes.ts'

/** Questions and reports so far. */
function countSaid({ seen, delegations }: Task): number {
  return seen.length - delegations
}

/** Refuses a duplicate, and a worker that never stops asking (S2.1). */
export function refuseQuestion({ task, settings }: TaskSnapshot, id: string): RefusedEvent | undefined {
  if (task.seen.includes(id)) return refuse('DUPLICATE', `${id} was already accepted`)
  if (task.claim !== null) return underValidation(task)
  if (countSaid(task) < settings.maxQuestions) return undefined
  return refuse(
    'TOO_MANY',
    `${task.id} reached its limit of ${settings.maxQuestions} questions and reports. Report it as completed.`,
  )
}

export function underValidation(task: Task): RefusedEvent {
  return refuse('UNDER_VALIDATION', `The report on ${task.id} is being validated; wait for the result`)
}

export function openQuestion(snapshot: TaskSnapshot, task: Task, question: TaskQuestion): Task {
  const seen = task.seen.includes(question.id) ? task.seen : [...task.seen, question.id]
  return updateState(snapshot, { ...started(snapshot, task), seen, questions: [...task.questions, question] })
}

function withoutWaiting(snapshot: TaskSnapshot, id: string): Task {
  return updateState(snapshot, { ...started(snapshot, snapshot.task), seen: [...snapshot.task.seen, id] })
}

/** The task's own timer covers an agent's answer. A request to a person has its own timer. */
function expiryOf({ now, settings }: TaskSnapshot, to: string): number | null {
  return to === OPERATOR ? null : now + settings.waitMs
}

type AskPersonEffect = Extract<TaskStoreEffect, { type: 'ask_person' }>

export function askPerson(
  { now, settings }: TaskSnapshot,
  { id, text }: Pick<TaskQuestion, 'id' | 'text'>,
  kind: AskPersonEffect['kind'],
  reason: string,
): AskPersonEffect {
  const expiresAt = settings.personMs === null ? null : now + settings.personMs
  return { type: 'ask_person', kind, question: id, text, reason, awaits: true, expiresAt }
}

export interface HelpRequest {
  id: string
  kind: 'report' | 'needs_help'
  text: string
  reason: string
}

/** Leaves it to the delegator to follow up, answer, or end the task, for a limited number of times (S2.1). */
export function requestHelp(snapshot: TaskSnapshot, task: Task, request: HelpRequest): Accepted {
  const { id, kind, text, reason } = request
  if (countSaid(task) > snapshot.settings.maxQuestions) {
    const why = `it needed help too often; last: ${reason}`
    return end(snapshot, task, { state: 'failed', reason: why, by: ORCHESTRATOR, escalate: true })
  }
  const to = task.delegator
  const question: TaskQuestion = { id, kind: 'help', to, text, expiresAt: expiryOf(snapshot, to) }
  const ask: TaskStoreEffect =
    to === OPERATOR
      ? askPerson(snapshot, question, 'escalation', reason)
      : { type: 'send', kind, to, text, wake: true, inReplyTo: id }
  return accept(openQuestion(snapshot, withoutHelp(task), question), ...withdrawHelp(task), ask)
}

/** A newer report replaces the help request that is still open. */
export function withoutHelp(task: Task): Task {
  return { ...task, questions: task.questions.filter(({ kind }) => kind !== 'help') }
}

export function withdrawHelp({ questions }: Task): TaskStoreEffect[] {
  return withdrawAll(questions.filter(({ kind }) => kind === 'help'))
}

/** Questions of a worker, and those that the service asks for it. */
export const questionHandlers: Pick<
  TaskEventHandlers,
  'query_asked' | 'user_asked' | 'approval_asked' | 'extension_requested'
> = {
  /** Both ways along parent–child edges (C11). */
  query_asked(snapshot, { question: id, to, text, requiresResponse }) {
    const { task } = snapshot
    const refused = refuseQuestion(snapshot, id)
    if (refused !== undefined) return refused
    const isChild = snapshot.children.some(({ agent, state }) => agent === to && !isEnd(state))
    if (to !== task.delegator && !isChild) {
      return refuse('NOT_RELATED', `${to} neither delegated ${task.id} nor works for it`)
    }
    const question: TaskQuestion = { id, kind: 'query', to, text, expiresAt: expiryOf(snapshot, to) }
    const asked = requiresResponse ? openQuestion(snapshot, task, question) : withoutWaiting(snapshot, id)
    if (to !== OPERATOR) {
      return accept(asked, { type: 'send', kind: 'query', to, text, wake: true, inReplyTo: id })
    }
    const ask = askPerson(snapshot, question, 'input', `${task.agent} asks about ${task.id}`)
    return accept(asked, { ...ask, awaits: requiresResponse })
  },

  user_asked(snapshot, { question: id, text, context, awaits = true, form }) {
    const { task } = snapshot
    const refused = refuseQuestion(snapshot, id)
    if (refused !== undefined) return refused
    const question: TaskQuestion = { id, kind: 'user', to: OPERATOR, text, expiresAt: null }
    const ask = askPerson(snapshot, question, 'input', context ?? `${task.agent} asks for ${task.id}`)
    const asked = awaits ? openQuestion(snapshot, task, question) : withoutWaiting(snapshot, id)
    return accept(asked, { ...ask, awaits, ...(form === undefined ? {} : { form }) })
  },

  /** A rule held the worker's command and already asked a person. */
  approval_asked(snapshot, { question: id, text }) {
    const refused = refuseQuestion(snapshot, id)
    if (refused !== undefined) return refused
    const question: TaskQuestion = { id, kind: 'approval', to: OPERATOR, text, expiresAt: null }
    return accept(openQuestion(snapshot, snapshot.task, question))
  },

  /** The work continues, and the deadline stays until the extension is granted (S3.19). */
  extension_requested(snapshot, { question: id, seconds, reason }) {
    const { task, settings } = snapshot
    const refused = refuseQuestion(snapshot, id)
    if (refused !== undefined) return refused
    if (!(seconds > 0 && seconds <= settings.maxExtensionSeconds)) {
      const message = `An extension is 1 to ${settings.maxExtensionSeconds} s, not ${seconds}`
      return refuse('OUT_OF_RANGE', message)
    }
    const to = task.delegator
    const text = `${task.agent} asks for ${seconds} s more for ${task.id}: ${reason}`
    const question: TaskQuestion = { id, kind: 'extension', to, text, expiresAt: null, seconds }
    const asked = openQuestion(snapshot, task, question)
    if (to === OPERATOR) return accept(asked, askPerson(snapshot, question, 'input', reason))
    return accept(asked, { type: 'send', kind: 'extension', to, text, wake: true, inReplyTo: id })
  },
}

type FoundQuestion = { ok: true; question: TaskQuestion } | RefusedEvent

/** By the question's id, or by the task's: then the last question of these kinds that was put to the sender. */
function findQuestion(
  task: Task,
  reference: string,
  by: string,
  kinds: readonly QuestionKind[],
): FoundQuestion {
  const isMeant = ({ id, to, kind }: TaskQuestion) =>
    id === reference || (reference === task.id && to === by && kinds.includes(kind))
  const question = task.questions.findLast(isMeant)
  if (question === undefined) {
    return task.seen.includes(reference)
      ? refuse('QUESTION_CLOSED', `${reference} no longer needs an answer`)
      : refuse('UNKNOWN_QUESTION', `${task.id} has no open question ${reference}`)
  }
  if (kinds.includes(question.kind)) return { ok: true, question }
  return refuse('UNKNOWN_QUESTION', `${reference} is a ${question.kind} question; answer it another way`)
}

/** Closes a question with a message to the worker. After help, the worker has its full time again. */
function answerWith(
  snapshot: TaskSnapshot,
  question: TaskQuestion,
  text: string,
  task = snapshot.task,
): Accepted {
  const questions = task.questions.filter(({ id }) => id !== question.id)
  const sent = sendToWorker({ ...task, questions }, 'answer', text, question.id)
  const timed = question.kind === 'help' ? { ...sent.task, remainingMs: task.timeoutMs } : sent.task
  // A request that a person answered is already closed; withdrawing it then changes nothing.
  return accept(updateState(snapshot, timed), ...withdrawAll([question]), sent.effect)
}

/** The worker continues without an answer. If a decision is missing, the task fails (C9). */
function expire(snapshot: TaskSnapshot, late: readonly TaskQuestion[]): Accepted {
  const decisive = late.find(({ kind }) => kind === 'help' || kind === 'takeover')
  if (decisive !== undefined) {
    const reason =
      decisive.kind === 'help' ? 'it needed help, and nobody gave it in time' : 'nobody finished it'
    return end(snapshot, snapshot.task, { state: 'failed', reason, by: ORCHESTRATOR, escalate: true })
  }
  return late.reduce(
    (result, question) =>
      prepend(answerWith(snapshot, question, noAnswerText(question.text), result.state), ...result.effects),
    accept(snapshot.task),
  )
}

/** Answers to a task's questions, and questions that expire. */
export const answerHandlers: Pick<
  TaskEventHandlers,
  | 'answered'
  | 'approval_decided'
  | 'extension_granted'
  | 'extension_refused'
  | 'question_expired'
  | 'wait_timed_out'
> = {
  answered(snapshot, { question: reference, by, answer }) {
    const found = findQuestion(snapshot.task, reference, by, ['query', 'help', 'user'])
    if (!found.ok) return found
    const { question } = found
    if (by !== question.to && by !== OPERATOR) {
      return refuse('NOT_YOURS', `${question.id} was addressed to ${question.to}`)
    }
    if (answer.trim() === '') {
      return refuse('BLANK_ANSWER', `An answer cannot be blank. The question: ${question.text}`)
    }
    return answerWith(snapshot, question, answer)
  },

  /** Only a person approves. An action without a decision isn't carried out (C9). */
  approval_decided(snapshot, { question: reference, by, verdict, text }) {
    const found = findQuestion(snapshot.task, reference, OPERATOR, ['approval'])
    if (!found.ok) return found
    const { question } = found
    if (by !== (verdict === 'expired' ? ORCHESTRATOR : OPERATOR)) {
      return refuse('NOT_A_PERSON', `Only a person decides on ${question.id}`)
    }
    return answerWith(snapshot, question, text)
  },

  extension_granted(snapshot, { question: reference, by }) {
    const found = findQuestion(snapshot.task, reference, by, ['extension'])
    if (!found.ok) return found
    const { task } = snapshot
    const seconds = found.question.seconds ?? 0
    const ms = seconds * 1000
    const longer: Task =
      task.due?.kind === 'deadline'
        ? { ...task, due: { ...task.due, at: task.due.at + ms } }
        : { ...task, remainingMs: task.remainingMs + ms }
    return answerWith(snapshot, found.question, `${seconds} s more were granted.`, longer)
  },

  extension_refused(snapshot, { question: reference, by, reason }) {
    const found = findQuestion(snapshot.task, reference, by, ['extension'])
    return found.ok ? answerWith(snapshot, found.question, `No more time: ${reason}`) : found
  },

  /** An approval expires by a verdict instead (`approval_decided`), so it is never mistaken for an answer. */
  question_expired(snapshot, { question: reference }) {
    const kinds: QuestionKind[] = ['query', 'user', 'help', 'extension', 'takeover']
    const found = findQuestion(snapshot.task, reference, OPERATOR, kinds)
    return found.ok ? expire(snapshot, [found.question]) : found
  },

  /** A single timer covers all questions, so all that are late expire together. */
  wait_timed_out(snapshot) {
    const { now, task } = snapshot
    const late = task.questions.filter(({ expiresAt }) => expiresAt !== null && expiresAt <= now)
    if (late.length === 0) return refuse('STALE', `${task.id} no longer waits for that`)
    return expire(snapshot, late)
  },
}
