/** Questions of a worker, and those that the service asks for it. */
import { OPERATOR, ORCHESTRATOR } from '../../../base/agent.ts'
import { isEnd, type Task, type TaskQuestion } from '../../task.ts'
import type { TaskStoreEffect } from '../effect.ts'
import { type RefusedEvent, refuse } from '../refusal.ts'
import type { TaskView } from '../view.ts'
import { end } from './ending.ts'
import { type Accepted, accept, started, type TaskEventHandlers, updateState } from './task-changes.ts'

/** Questions and reports so far. */
function countSaid({ seen, delegations }: Task): number {
  return seen.length - delegations
}

/** Refuses a duplicate, and a worker that never stops asking (S2.1). */
export function refuseQuestion({ task, settings }: TaskView, id: string): RefusedEvent | undefined {
  if (task.seen.includes(id)) return refuse('DUPLICATE', `${id} was already accepted`)
  if (task.claim !== null) return underValidation(task)
  if (countSaid(task) < settings.maxQuestions) return undefined
  return refuse(
    'TOO_MANY',
    `${task.id} has asked and reported ${settings.maxQuestions} times. Report completed.`,
  )
}

export function underValidation(task: Task): RefusedEvent {
  return refuse('UNDER_VALIDATION', `The report on ${task.id} is being validated; wait for the result`)
}

export function openQuestion(view: TaskView, task: Task, question: TaskQuestion): Task {
  const seen = task.seen.includes(question.id) ? task.seen : [...task.seen, question.id]
  return updateState(view, { ...started(view, task), seen, questions: [...task.questions, question] })
}

function withoutWaiting(view: TaskView, id: string): Task {
  return updateState(view, { ...started(view, view.task), seen: [...view.task.seen, id] })
}

/** The task's own timer covers an agent's answer. A request to a person has a timer of its own. */
function expiryOf({ now, settings }: TaskView, to: string): number | null {
  return to === OPERATOR ? null : now + settings.waitMs
}

type AskPersonEffect = Extract<TaskStoreEffect, { type: 'ask_person' }>

export function askPerson(
  { now, task, settings }: TaskView,
  { id, text }: Pick<TaskQuestion, 'id' | 'text'>,
  kind: AskPersonEffect['kind'],
  reason: string,
): AskPersonEffect {
  const expiresAt = settings.personMs === null ? null : now + settings.personMs
  return { type: 'ask_person', kind, task: task.id, question: id, text, reason, awaits: true, expiresAt }
}

export interface HelpRequest {
  id: string
  kind: 'report' | 'needs_help'
  text: string
  reason: string
}

/** Leaves it to the delegator to follow up, answer, or end the task, for a limited number of times (S2.1). */
export function requestHelp(view: TaskView, task: Task, request: HelpRequest): Accepted {
  const { id, kind, text, reason } = request
  if (countSaid(task) > view.settings.maxQuestions) {
    const why = `it needed help too often; last: ${reason}`
    return end(view, task, { state: 'failed', reason: why, by: ORCHESTRATOR, escalate: true })
  }
  const to = task.delegator
  const question: TaskQuestion = { id, kind: 'help', to, text, expiresAt: expiryOf(view, to) }
  const ask: TaskStoreEffect =
    to === OPERATOR
      ? askPerson(view, question, 'escalation', reason)
      : { type: 'send', kind, to, task: task.id, text, wake: true, inReplyTo: id }
  return accept(openQuestion(view, withoutHelp(task), question), ...withdrawHelp(task), ask)
}

/** A newer report replaces the help request that is still open. */
export function withoutHelp(task: Task): Task {
  return { ...task, questions: task.questions.filter(({ kind }) => kind !== 'help') }
}

export function withdrawHelp({ id, questions }: Task): TaskStoreEffect[] {
  return questions
    .filter(({ kind, to }) => kind === 'help' && to === OPERATOR)
    .map((question) => ({ type: 'withdraw', task: id, question: question.id }))
}

export const questionHandlers: Pick<
  TaskEventHandlers,
  'query_asked' | 'user_asked' | 'approval_asked' | 'extension_requested'
> = {
  /** Both ways along parent–child edges (C11). */
  query_asked(view, { question: id, to, text, requiresResponse }) {
    const { task } = view
    const refused = refuseQuestion(view, id)
    if (refused !== undefined) return refused
    const isChild = view.children.some(({ agent, state }) => agent === to && !isEnd(state))
    if (to !== task.delegator && !isChild) {
      return refuse('NOT_RELATED', `${to} neither delegated ${task.id} nor works for it`)
    }
    const question: TaskQuestion = { id, kind: 'query', to, text, expiresAt: expiryOf(view, to) }
    const asked = requiresResponse ? openQuestion(view, task, question) : withoutWaiting(view, id)
    if (to !== OPERATOR) {
      return accept(asked, {
        type: 'send',
        kind: 'query',
        to,
        task: task.id,
        text,
        wake: true,
        inReplyTo: id,
      })
    }
    const ask = askPerson(view, question, 'input', `${task.agent} asks about ${task.id}`)
    return accept(asked, { ...ask, awaits: requiresResponse })
  },

  user_asked(view, { question: id, text, context, awaits = true, form }) {
    const { task } = view
    const refused = refuseQuestion(view, id)
    if (refused !== undefined) return refused
    const question: TaskQuestion = { id, kind: 'user', to: OPERATOR, text, expiresAt: null }
    const ask = askPerson(view, question, 'input', context ?? `${task.agent} asks for ${task.id}`)
    const asked = awaits ? openQuestion(view, task, question) : withoutWaiting(view, id)
    return accept(asked, { ...ask, awaits, ...(form === undefined ? {} : { form }) })
  },

  /** A rule held the worker's command and already asked a person. */
  approval_asked(view, { question: id, text }) {
    const refused = refuseQuestion(view, id)
    if (refused !== undefined) return refused
    const question: TaskQuestion = { id, kind: 'approval', to: OPERATOR, text, expiresAt: null }
    return accept(openQuestion(view, view.task, question))
  },

  /** The work continues, and the deadline stays until the extension is granted (S3.19). */
  extension_requested(view, { question: id, seconds, reason }) {
    const { task, settings } = view
    const refused = refuseQuestion(view, id)
    if (refused !== undefined) return refused
    if (!(seconds > 0 && seconds <= settings.maxExtensionSeconds)) {
      const message = `An extension is 1 to ${settings.maxExtensionSeconds} s, not ${seconds}`
      return refuse('OUT_OF_RANGE', message)
    }
    const to = task.delegator
    const text = `${task.agent} asks for ${seconds} s more for ${task.id}: ${reason}`
    const question: TaskQuestion = { id, kind: 'extension', to, text, expiresAt: null, seconds }
    const asked = openQuestion(view, task, question)
    if (to === OPERATOR) return accept(asked, askPerson(view, question, 'input', reason))
    return accept(asked, {
      type: 'send',
      kind: 'extension',
      to,
      task: task.id,
      text,
      wake: true,
      inReplyTo: id,
    })
  },
}
