/** Reports of the worker, and turns that end without one. */
import { isEnd, type Task } from '../../task.ts'
import { type RefusedEvent, refuse } from '../refusal.ts'
import type { TaskView } from '../view.ts'
import { forgotText, reminderText } from '../wording.ts'
import { type HelpRequest, refuseQuestion, requestHelp, withdrawHelp, withoutHelp } from './questions.ts'
import {
  type Accepted,
  accept,
  prepend,
  restingState,
  sendToWorker,
  started,
  type TaskEventHandlers,
  updateState,
} from './task-changes.ts'
import { complete, reject, validate, withEvidence } from './validation.ts'

export const reportHandlers: Pick<TaskEventHandlers, 'reported' | 'turn_ended'> = {
  reported(view, event) {
    const isClaim = event.status === 'completed'
    const refused = refuseReport(view, event.report, isClaim)
    if (refused !== undefined) return refused
    const task: Task = { ...started(view, view.task), seen: [...view.task.seen, event.report] }
    const result = isClaim
      ? claimCompleted(view, task, event.result, event.problem)
      : requestHelp(view, { ...task, result: event.result }, helpRequestOf(task, event))
    // Any report shows that the worker works, so it closes the circuit.
    if (task.takenOver) return result
    return prepend(result, { type: 'record_outcome', agent: task.agent, outcome: 'success' })
  },

  /** Models often forget to report (ask 5): remind the worker up to the limit, then ask the delegator. */
  turn_ended(view, { said, lastWords }) {
    const { task } = view
    const isIdle = task.state === 'executing' && task.claim === null && !task.unread
    if (!isIdle) return accept(task)
    if (restingState(task, view.children) !== 'executing') return accept(updateState(view, task))
    if (said) return accept(task)
    if (task.reminders < view.settings.maxReminders) {
      const waiting = view.children.filter((child) => child.requiresResponse && !isEnd(child.state))
      const sent = sendToWorker(task, 'reminder', reminderText(task, waiting))
      return accept({ ...sent.task, reminders: task.reminders + 1 }, sent.effect)
    }
    return requestHelp(view, task, {
      id: `${task.id}/silent/${task.version}`,
      kind: 'needs_help',
      text: forgotText(task, lastWords),
      reason: `${task.agent} did not report`,
    })
  },
}

/** A worker that has asked too often may still report completed, for a limited number of times. */
function refuseReport(view: TaskView, id: string, isClaim: boolean): RefusedEvent | undefined {
  const { task, settings } = view
  const refused = refuseQuestion(view, id)
  if (!isClaim || (refused !== undefined && refused.refusal.code !== 'TOO_MANY')) return refused
  if (task.claims < settings.maxQuestions) return undefined
  return refuse('TOO_MANY', `${task.id} was reported ${task.claims} times; its delegator decides now`)
}

function helpRequestOf(task: Task, event: { report: string; status: string; result: string }): HelpRequest {
  const kind = event.status === 'partial' ? 'report' : 'needs_help'
  const reason = `${task.agent} reports ${event.status}`
  return { id: event.report, kind, text: event.result, reason }
}

function claimCompleted(view: TaskView, task: Task, result: string, problem: string | undefined): Accepted {
  const number = task.claims + 1
  const claimed: Task = {
    ...withoutHelp(task),
    claims: number,
    claim: { number, result, step: 'checks' },
  }
  const wrong = problem ?? (result.trim() === '' ? 'the result is empty' : undefined)
  if (wrong !== undefined) {
    return prepend(reject(view, claimed, { step: 'schema', text: wrong }), ...withdrawHelp(task))
  }
  const valid = withEvidence(view, claimed, {
    step: 'schema',
    outcome: 'passed',
    text:
      task.resultSchema === null || task.takenOver ? 'the report is not empty' : 'the result fits its schema',
  })
  // A person's report needs no judge.
  if (task.takenOver) return complete(view, valid, 'a person finished it')
  // `updateState` saves the working time before `validate` sets the claim's timer.
  return prepend(validate(view, updateState(view, valid)), ...withdrawHelp(task))
}
