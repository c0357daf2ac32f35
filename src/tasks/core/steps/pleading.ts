import { OPERATOR, ORCHESTRATOR } from '../../../base/agent.ts'
import type { Question, Task } from '../../task.ts'
import type { StoreEffect } from '../effect.ts'
import type { TaskSettings } from '../settings.ts'
import type { View } from '../view.ts'
import { askPerson, expiry, open, saidOf } from './asking.ts'
import { end } from './ending.ts'
import { type Done, done } from './outcome.ts'

export interface Plea {
  id: string
  kind: 'report' | 'needs_help'
  text: string
  reason: string
}

/** The delegator decides how it goes on: follow up, answer, or end it. It is not asked for ever (S2.1). */
export function seekHelp(view: View, task: Task, plea: Plea, settings: TaskSettings): Done {
  const { id, kind, text, reason } = plea
  if (saidOf(task) > settings.maxQuestions) {
    const why = `it needed help too often; last: ${reason}`
    return end(view, task, { state: 'failed', reason: why, by: ORCHESTRATOR, escalate: true })
  }
  const to = task.delegator
  const question: Question = { id, kind: 'help', to, text, expiresAt: expiry(view, to, settings) }
  const ask: StoreEffect =
    to === OPERATOR
      ? askPerson(view, question, 'escalation', reason, settings)
      : { type: 'send', kind, to, task: task.id, text, wake: true, inReplyTo: id }
  return done(open(view, withoutHelp(task), question, settings), ...withdrawHelp(task), ask)
}

/** A newer report takes the place of the one that is still undecided. */
export function withoutHelp(task: Task): Task {
  return { ...task, questions: task.questions.filter(({ kind }) => kind !== 'help') }
}

export function withdrawHelp({ id, questions }: Task): StoreEffect[] {
  return questions
    .filter(({ kind, to }) => kind === 'help' && to === OPERATOR)
    .map((question) => ({ type: 'withdraw', task: id, question: question.id }))
}
