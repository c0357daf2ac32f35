/** What a worker asks of others. */
import { OPERATOR } from '../../../base/agent.ts'
import { isEnd, type Question, type Task } from '../../task.ts'
import type { StoreEffect } from '../effect.ts'
import type { TaskSettings } from '../settings.ts'
import type { Refusal, View } from '../view.ts'
import { done, type Handlers, refuse } from './outcome.ts'
import { begun, settle } from './resting.ts'

/** Questions and reports so far. */
export function saidOf({ seen, delegations }: Task): number {
  return seen.length - delegations
}

/** A doubled one counts once; a worker that asks for ever is stopped (S2.1). */
export function notTaken(task: Task, id: string, settings: TaskSettings): Refusal | undefined {
  if (task.seen.includes(id)) return refuse('DUPLICATE', `${id} was taken already`)
  if (task.claim !== null) return underValidation(task)
  if (saidOf(task) < settings.maxQuestions) return undefined
  return refuse(
    'TOO_MANY',
    `${task.id} has asked and reported ${settings.maxQuestions} times. Report completed.`,
  )
}

export function underValidation(task: Task): Refusal {
  return refuse('UNDER_VALIDATION', `The report on ${task.id} is being validated; wait for the outcome`)
}

/** Opens a question of the worker's, or one that the service asks on its behalf. */
export function open(view: View, task: Task, question: Question, settings: TaskSettings): Task {
  const seen = task.seen.includes(question.id) ? task.seen : [...task.seen, question.id]
  return settle(view, { ...begun(view, task), seen, questions: [...task.questions, question] }, settings)
}

/** An agent has its time to answer on our clock; a person's request has a clock of its own. */
export function expiry(view: View, to: string, settings: TaskSettings): number | null {
  return to === OPERATOR ? null : view.now + settings.waitMs
}

type AskPerson = Extract<StoreEffect, { type: 'ask_person' }>

export function askPerson(
  view: View,
  { id, text }: Pick<Question, 'id' | 'text'>,
  kind: AskPerson['kind'],
  reason: string,
  settings: TaskSettings,
): AskPerson {
  const expiresAt = settings.personMs === null ? null : view.now + settings.personMs
  return { type: 'ask_person', kind, task: view.task.id, question: id, text, reason, awaits: true, expiresAt }
}

export const asking: Pick<Handlers, 'query_asked' | 'user_asked' | 'approval_asked'> = {
  /** Both ways along parent–child edges (C11). */
  query_asked(view, { question: id, to, text, requiresResponse }, settings) {
    const { task } = view
    const refused = notTaken(task, id, settings)
    if (refused !== undefined) return refused
    const isChild = view.children.some(({ agent, state }) => agent === to && !isEnd(state))
    if (to !== task.delegator && !isChild) {
      return refuse('NOT_RELATED', `${to} neither delegated ${task.id} nor works for it`)
    }
    const question: Question = { id, kind: 'query', to, text, expiresAt: expiry(view, to, settings) }
    const asked = requiresResponse
      ? open(view, task, question, settings)
      : settle(view, { ...begun(view, task), seen: [...task.seen, id] }, settings)
    if (to !== OPERATOR) {
      return done(asked, { type: 'send', kind: 'query', to, task: task.id, text, wake: true, inReplyTo: id })
    }
    const ask = askPerson(view, question, 'input', `${task.agent} asks about ${task.id}`, settings)
    return done(asked, { ...ask, awaits: requiresResponse })
  },

  user_asked(view, { question: id, text, context, awaits = true, form }, settings) {
    const { task } = view
    const refused = notTaken(task, id, settings)
    if (refused !== undefined) return refused
    const question: Question = { id, kind: 'user', to: OPERATOR, text, expiresAt: null }
    const ask = askPerson(view, question, 'input', context ?? `${task.agent} asks for ${task.id}`, settings)
    const asked = awaits
      ? open(view, task, question, settings)
      : settle(view, { ...begun(view, task), seen: [...task.seen, id] }, settings)
    return done(asked, { ...ask, awaits, ...(form === undefined ? {} : { form }) })
  },

  /** The request is with the people already: a rule held the worker's command. */
  approval_asked(view, { question: id, text }, settings) {
    const refused = notTaken(view.task, id, settings)
    if (refused !== undefined) return refused
    const question: Question = { id, kind: 'approval', to: OPERATOR, text, expiresAt: null }
    return done(open(view, view.task, question, settings))
  },
}
