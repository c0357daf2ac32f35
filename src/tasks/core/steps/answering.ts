/** What others answer to a task's questions, or don't. */
import { OPERATOR, ORCHESTRATOR } from '../../../base/agent.ts'
import type { Question, QuestionKind, Task } from '../../task.ts'
import type { StoreEffect } from '../effect.ts'
import type { TaskSettings } from '../settings.ts'
import type { Refusal, View } from '../view.ts'
import { silenceText, verdictText } from '../wording.ts'
import { end } from './ending.ts'
import { also, type Done, done, type Handlers, refuse } from './outcome.ts'
import { settle } from './resting.ts'
import { sendToWorker } from './worker.ts'

type Found = { ok: true; question: Question } | Refusal

/** By its id, or by the task's: then the last one of these kinds that was put to whoever answers. */
export function findQuestion(task: Task, ref: string, by: string, kinds: readonly QuestionKind[]): Found {
  const isMeant = ({ id, to, kind }: Question) =>
    id === ref || (ref === task.id && to === by && kinds.includes(kind))
  const question = task.questions.findLast(isMeant)
  if (question === undefined) {
    return task.seen.includes(ref)
      ? refuse('QUESTION_CLOSED', `${ref} needs no answer any more`)
      : refuse('UNKNOWN_QUESTION', `${task.id} has no open question ${ref}`)
  }
  if (kinds.includes(question.kind)) return { ok: true, question }
  return refuse('UNKNOWN_QUESTION', `${ref} is a matter of ${question.kind} and is not settled in this way`)
}

/** Closes a question with words for the worker, whoever they came from. After help it has its full time again. */
export function answer(
  view: View,
  question: Question,
  text: string,
  settings: TaskSettings,
  task = view.task,
): Done {
  const questions = task.questions.filter(({ id }) => id !== question.id)
  const sent = sendToWorker({ ...task, questions }, 'answer', text, question.id)
  const rested = question.kind === 'help' ? { ...sent.task, remainingMs: task.timeoutMs } : sent.task
  // Of a person's own verdict the request is closed by then.
  const withdraw: StoreEffect[] =
    question.to === OPERATOR ? [{ type: 'withdraw', task: task.id, question: question.id }] : []
  return done(settle(view, rested, settings), ...withdraw, sent.effect)
}

function blank({ text }: Question): Refusal {
  return refuse('BLANK_ANSWER', `An answer cannot be blank. The question: ${text}`)
}

/** Nobody answered. Who asked goes on without; where a decision is missing, the task fails (C9). */
function expire(view: View, late: readonly Question[], settings: TaskSettings): Done {
  const decisive = late.find(({ kind }) => kind === 'help' || kind === 'takeover')
  if (decisive !== undefined) {
    const reason =
      decisive.kind === 'help' ? 'it needed help, and nobody gave it in time' : 'nobody finished it'
    return end(view, view.task, { state: 'failed', reason, by: ORCHESTRATOR, escalate: true })
  }
  return late.reduce(
    (outcome, question) =>
      also(answer(view, question, silenceText(question.text), settings, outcome.task), ...outcome.effects),
    done(view.task),
  )
}

export const answering: Pick<
  Handlers,
  'query_answered' | 'user_answered' | 'approval_decided' | 'question_expired' | 'wait_timed_out'
> = {
  query_answered(view, { question: ref, by, answer: text }, settings) {
    const found = findQuestion(view.task, ref, by, ['query', 'help', 'user'])
    if (!found.ok) return found
    const { question } = found
    if (by !== question.to && by !== OPERATOR) {
      return refuse('NOT_YOURS', `${question.id} was put to ${question.to}`)
    }
    if (text.trim() === '') return blank(question)
    return answer(view, question, text, settings)
  },

  user_answered(view, { question: ref, by, answer: text }, settings) {
    const found = findQuestion(view.task, ref, by, ['user', 'query', 'help'])
    if (!found.ok) return found
    if (text.trim() === '') return blank(found.question)
    return answer(view, found.question, text, settings)
  },

  /** Only a person approves. What nobody decided on is not carried out (C9). */
  approval_decided(view, { question: ref, by, verdict, comment }, settings) {
    const found = findQuestion(view.task, ref, OPERATOR, ['approval'])
    if (!found.ok) return found
    const { question } = found
    if (by !== (verdict === 'expired' ? ORCHESTRATOR : OPERATOR)) {
      return refuse('NOT_A_PERSON', `Only a person decides on ${question.id}`)
    }
    const word = verdict === 'expired' ? 'not executed, nobody decided' : verdict
    const answered = answer(view, question, verdictText(question.text, word, comment), settings)
    if (verdict !== 'approved' && verdict !== 'modified') return answered
    return also(answered, { type: 'perform', task: view.task.id, question: question.id, by })
  },

  /** An approval expires as a verdict, so that it can never be mistaken for one that was given. */
  question_expired(view, { question: ref }, settings) {
    const found = findQuestion(view.task, ref, OPERATOR, ['query', 'user', 'help', 'extension', 'takeover'])
    return found.ok ? expire(view, [found.question], settings) : found
  },

  /** All that are late at once: the timer that fired was the only one. */
  wait_timed_out(view, _, settings) {
    const { now, task } = view
    const late = task.questions.filter(({ expiresAt }) => expiresAt !== null && expiresAt <= now)
    if (late.length === 0) return refuse('STALE', `${task.id} does not wait for that any more`)
    return expire(view, late, settings)
  },
}
