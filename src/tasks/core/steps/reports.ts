/** What the worker says of its work, or forgets to say. */
import { isEnd, type Task } from '../../task.ts'
import type { TaskSettings } from '../settings.ts'
import type { Refusal, View } from '../view.ts'
import { forgotText, reminderText } from '../wording.ts'
import { notTaken } from './asking.ts'
import { complete, reject, withEvidence } from './claims.ts'
import { also, type Done, done, type Handlers, refuse } from './outcome.ts'
import { type Plea, seekHelp, withdrawHelp, withoutHelp } from './pleading.ts'
import { begun, restingState, settle } from './resting.ts'
import { validate } from './validation.ts'
import { sendToWorker } from './worker.ts'

export const reports: Pick<Handlers, 'reported' | 'turn_ended'> = {
  reported(view, event, settings) {
    const isClaim = event.status === 'completed'
    const refused = refuseReport(view.task, event.report, isClaim, settings)
    if (refused !== undefined) return refused
    const task: Task = { ...begun(view, view.task), seen: [...view.task.seen, event.report] }
    const outcome = isClaim
      ? claim(view, task, event.result, event.problem, settings)
      : seekHelp(view, { ...task, result: event.result }, pleaOf(task, event), settings)
    // Whatever a report says, its worker works.
    if (task.takenOver) return outcome
    return also(outcome, { type: 'record_outcome', agent: task.agent, outcome: 'success' })
  },

  /** A forgetful model is the normal case (ask 5): reminded, at most twice, then the delegator is told. */
  turn_ended(view, { said, lastWords }, settings) {
    const { task } = view
    const hasNothingToDo = task.state === 'executing' && task.claim === null && !task.unread
    if (!hasNothingToDo) return done(task)
    if (restingState(task, view.children) !== 'executing') return done(settle(view, task, settings))
    if (said) return done(task)
    if (task.reminders < settings.maxReminders) {
      const waiting = view.children.filter((child) => child.requiresResponse && !isEnd(child.state))
      const sent = sendToWorker(task, 'reminder', reminderText(task, waiting))
      return done({ ...sent.task, reminders: task.reminders + 1 }, sent.effect)
    }
    const plea: Plea = {
      id: `${task.id}/silent/${task.version}`,
      kind: 'needs_help',
      text: forgotText(task, lastWords),
      reason: `${task.agent} did not report`,
    }
    return seekHelp(view, task, plea, settings)
  },
}

/** A worker that has asked too often can still finish; but it can't claim so for ever. */
function refuseReport(task: Task, id: string, isClaim: boolean, settings: TaskSettings): Refusal | undefined {
  const refused = notTaken(task, id, settings)
  if (!isClaim || (refused !== undefined && refused.code !== 'TOO_MANY')) return refused
  if (task.claims < settings.maxQuestions) return undefined
  return refuse('TOO_MANY', `${task.id} was reported ${task.claims} times; its delegator decides now`)
}

function pleaOf(task: Task, event: { report: string; status: string; result: string }): Plea {
  const kind = event.status === 'partial' ? 'report' : 'needs_help'
  const reason = `${task.agent} reports ${event.status}`
  return { id: event.report, kind, text: event.result, reason }
}

function claim(
  view: View,
  task: Task,
  result: string,
  problem: string | undefined,
  settings: TaskSettings,
): Done {
  const number = task.claims + 1
  const claimed: Task = {
    ...withoutHelp(task),
    claims: number,
    claim: { number, result, step: 'checks' },
  }
  const wrong = problem ?? (result.trim() === '' ? 'the result is empty' : undefined)
  if (wrong !== undefined) {
    return also(reject(view, claimed, { step: 'schema', text: wrong }, settings), ...withdrawHelp(task))
  }
  const sound = withEvidence(view, claimed, {
    step: 'schema',
    outcome: 'passed',
    text:
      task.resultSchema === null || task.takenOver ? 'the report is not empty' : 'the result fits its schema',
  })
  // A person's word needs no judge.
  if (task.takenOver) return complete(view, sound, 'a person finished it')
  // The task's own clock is put by before the claim's is set.
  return also(validate(view, settle(view, sound, settings), settings), ...withdrawHelp(task))
}
