/** Answers to a task's questions, and questions that expire. */
import { OPERATOR, ORCHESTRATOR } from '../../../base/agent.ts'
import type { QuestionKind, Task, TaskQuestion } from '../../task.ts'
import type { TaskStoreEffect } from '../effect.ts'
import { type RefusedEvent, refuse } from '../refusal.ts'
import type { TaskView } from '../view.ts'
import { noAnswerText, verdictText } from '../wording.ts'
import { end } from './ending.ts'
import {
  type Accepted,
  accept,
  prepend,
  sendToWorker,
  type TaskEventHandlers,
  updateState,
} from './task-changes.ts'

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
function answerWith(view: TaskView, question: TaskQuestion, text: string, task = view.task): Accepted {
  const questions = task.questions.filter(({ id }) => id !== question.id)
  const sent = sendToWorker({ ...task, questions }, 'answer', text, question.id)
  const timed = question.kind === 'help' ? { ...sent.task, remainingMs: task.timeoutMs } : sent.task
  // A request that a person answered is already closed; withdrawing it then changes nothing.
  const withdraw: TaskStoreEffect[] =
    question.to === OPERATOR ? [{ type: 'withdraw', task: task.id, question: question.id }] : []
  return accept(updateState(view, timed), ...withdraw, sent.effect)
}

function refuseBlank({ text }: TaskQuestion): RefusedEvent {
  return refuse('BLANK_ANSWER', `An answer cannot be blank. The question: ${text}`)
}

/** The worker continues without an answer. If a decision is missing, the task fails (C9). */
function expire(view: TaskView, late: readonly TaskQuestion[]): Accepted {
  const decisive = late.find(({ kind }) => kind === 'help' || kind === 'takeover')
  if (decisive !== undefined) {
    const reason =
      decisive.kind === 'help' ? 'it needed help, and nobody gave it in time' : 'nobody finished it'
    return end(view, view.task, { state: 'failed', reason, by: ORCHESTRATOR, escalate: true })
  }
  return late.reduce(
    (result, question) =>
      prepend(answerWith(view, question, noAnswerText(question.text), result.state), ...result.effects),
    accept(view.task),
  )
}

export const answerHandlers: Pick<
  TaskEventHandlers,
  | 'query_answered'
  | 'user_answered'
  | 'approval_decided'
  | 'extension_granted'
  | 'extension_refused'
  | 'question_expired'
  | 'wait_timed_out'
> = {
  query_answered(view, { question: reference, by, answer }) {
    const found = findQuestion(view.task, reference, by, ['query', 'help', 'user'])
    if (!found.ok) return found
    const { question } = found
    if (by !== question.to && by !== OPERATOR) {
      return refuse('NOT_YOURS', `${question.id} was put to ${question.to}`)
    }
    if (answer.trim() === '') return refuseBlank(question)
    return answerWith(view, question, answer)
  },

  user_answered(view, { question: reference, by, answer }) {
    const found = findQuestion(view.task, reference, by, ['user', 'query', 'help'])
    if (!found.ok) return found
    if (answer.trim() === '') return refuseBlank(found.question)
    return answerWith(view, found.question, answer)
  },

  /** Only a person approves. An action without a decision isn't carried out (C9). */
  approval_decided(view, { question: reference, by, verdict, comment }) {
    const found = findQuestion(view.task, reference, OPERATOR, ['approval'])
    if (!found.ok) return found
    const { question } = found
    if (by !== (verdict === 'expired' ? ORCHESTRATOR : OPERATOR)) {
      return refuse('NOT_A_PERSON', `Only a person decides on ${question.id}`)
    }
    const word = verdict === 'expired' ? 'not executed, nobody decided' : verdict
    const answered = answerWith(view, question, verdictText(question.text, word, comment))
    if (verdict !== 'approved' && verdict !== 'modified') return answered
    return prepend(answered, { type: 'perform', task: view.task.id, question: question.id, by })
  },

  extension_granted(view, { question: reference, by }) {
    const found = findQuestion(view.task, reference, by, ['extension'])
    if (!found.ok) return found
    const { task } = view
    const seconds = found.question.seconds ?? 0
    const ms = seconds * 1000
    const longer: Task =
      task.due?.kind === 'deadline'
        ? { ...task, due: { ...task.due, at: task.due.at + ms } }
        : { ...task, remainingMs: task.remainingMs + ms }
    return answerWith(view, found.question, `${seconds} s more were granted.`, longer)
  },

  extension_refused(view, { question: reference, by, reason }) {
    const found = findQuestion(view.task, reference, by, ['extension'])
    return found.ok ? answerWith(view, found.question, `No more time: ${reason}`) : found
  },

  /** An approval expires by a verdict instead (`approval_decided`), so it is never mistaken for an answer. */
  question_expired(view, { question: reference }) {
    const kinds: QuestionKind[] = ['query', 'user', 'help', 'extension', 'takeover']
    const found = findQuestion(view.task, reference, OPERATOR, kinds)
    return found.ok ? expire(view, [found.question]) : found
  },

  /** A single timer covers all questions, so all that are late expire together. */
  wait_timed_out(view) {
    const { now, task } = view
    const late = task.questions.filter(({ expiresAt }) => expiresAt !== null && expiresAt <= now)
    if (late.length === 0) return refuse('STALE', `${task.id} no longer waits for that`)
    return expire(view, late)
  },
}
