/** Reports of the worker, reminders after a silent turn, and the validation of claims. */
import { ORCHESTRATOR } from '../../base/agent.ts'
import { type ClaimReview, type Evidence, isEnd, type Task } from '../task.ts'
import { type HelpRequest, refuseQuestion, requestHelp, withdrawHelp, withoutHelp } from './questions.ts'
import { type RefusedEvent, refuse } from './refusal.ts'
import {
  type Accepted,
  accept,
  end,
  prepend,
  restingState,
  sendToWorker,
  started,
  type TaskEventHandlers,
  updateState,
  workerOf,
} from './task-changes.ts'
import type { TaskView } from './view.ts'
import {
  forgotText,
  forgotToJudgeText,
  rejectionText,
  reminderText,
  reviewReminderText,
  reviewText,
  unvalidatedText,
} from './wording.ts'

/** Reports of the worker, and turns that end without one. */
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
  turn_ended(view, { responded, lastWords }) {
    const { task } = view
    const isIdle = task.state === 'executing' && task.claim === null && !task.unread
    if (!isIdle) return accept(task)
    if (restingState(task, view.children) !== 'executing') return accept(updateState(view, task))
    if (responded) return accept(task)
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

type NewEvidence = Omit<Evidence, 'claim' | 'at'>

/** Evidence about claims is kept in the order in which it was found. */
function withEvidence({ now }: TaskView, task: Task, evidence: NewEvidence): Task {
  return { ...task, evidence: [...task.evidence, { claim: task.claims, at: now, ...evidence }] }
}

/** Starts with the checks. A step that isn't configured is skipped, with evidence that says so. */
export function validate(view: TaskView, task: Task): Accepted {
  if (task.checks.length === 0) {
    const skipped = { step: 'checks', outcome: 'skipped', text: 'no checks were declared' } as const
    return askJudge(view, withEvidence(view, task, skipped))
  }
  const due = { kind: 'validation', at: view.now + view.settings.checksMs } as const
  return accept(updateState(view, { ...task, due }))
}

function askJudge(view: TaskView, task: Task): Accepted {
  const { judge, checks } = task
  const isOwn = judge?.kind === 'agent' && judge.name === task.agent
  if (judge === null || isOwn) {
    const text = isOwn ? `${judge.name} does not judge its own work` : 'no judge is configured'
    const reason = checks.length > 0 ? 'reported, and its checks passed' : 'reported'
    return complete(view, withEvidence(view, task, { step: 'judge', outcome: 'skipped', text }), reason)
  }
  const asked: Task = {
    ...task,
    claim: { ...task.claim!, step: 'judge' },
    due: { kind: 'validation', at: view.now + view.settings.judgeMs[judge.kind] },
  }
  if (judge.kind === 'agent') return askReviewer(view, asked, reviewText(asked), 0)
  return accept(updateState(view, asked))
}

function askReviewer(view: TaskView, task: Task, text: string, reminders: number): Accepted {
  const asked = withReview(task, { taken: false, reminders })
  const to = task.judge!.name
  const effect = { type: 'send', kind: 'review', to, task: task.id, text, wake: true } as const
  return accept(updateState(view, asked), effect)
}

function withReview(task: Task, review: ClaimReview): Task {
  return { ...task, claim: { ...task.claim!, review } }
}

export function complete(view: TaskView, task: Task, reason: string): Accepted {
  const result = task.claim?.result ?? task.result
  return end(view, { ...task, result }, { state: 'completed', reason, by: workerOf(task) })
}

/** Ends the claim, keeps its result, and restarts the working time. */
function withoutClaim(task: Task): Task {
  const result = task.claim?.result ?? task.result
  return { ...task, result, claim: null, due: null, remainingMs: task.timeoutMs }
}

/** Returns the claim to the worker with the reason, up to the retry limit; then the delegator decides. */
export function reject(view: TaskView, task: Task, found: Omit<NewEvidence, 'outcome'>): Accepted {
  const unclaimed = withEvidence(view, withoutClaim(task), { ...found, outcome: 'failed' })
  if (unclaimed.rejections < unclaimed.maxAttempts - 1) {
    const again = { ...unclaimed, rejections: unclaimed.rejections + 1 }
    const sent = sendToWorker(again, 'follow_up', rejectionText(again, found.text))
    return accept(updateState(view, sent.task), sent.effect)
  }
  return leaveToDelegator(view, unclaimed, found.text, 'validation failed')
}

/** A claim that could not be validated is neither accepted nor returned to the worker: the delegator decides. */
function giveUp(view: TaskView, why: string): Accepted {
  const { task } = view
  const evidence = { step: task.claim!.step, outcome: 'unavailable', text: why } as const
  const left = withEvidence(view, withoutClaim(task), evidence)
  return leaveToDelegator(view, left, `it could not be validated: ${why}`, 'validation gave up')
}

function leaveToDelegator(view: TaskView, task: Task, why: string, reason: string): Accepted {
  const id = `${task.id}/claim/${task.claims}`
  return requestHelp(view, task, { id, kind: 'needs_help', text: unvalidatedText(task, why), reason })
}

/** Refuses results about another claim, or about another step of it. */
function refuseStale({ task }: TaskView, claim: number, step?: 'checks' | 'judge'): RefusedEvent | undefined {
  const isCurrent = task.claim?.number === claim && (step === undefined || task.claim.step === step)
  return isCurrent ? undefined : refuse('STALE', `Claim ${claim} of ${task.id} is not awaiting validation`)
}

const noReview = (task: Task) => refuse('STALE', `${task.id} does not wait for an agent's judgement`)

/** A report of completed is a claim, validated in order: schema → checks → judge (C22). The task completes only then. */
export const validationHandlers: Pick<
  TaskEventHandlers,
  | 'validation_began'
  | 'checks_passed'
  | 'checks_failed'
  | 'judged'
  | 'validation_gave_up'
  | 'validation_timed_out'
  | 'review_taken'
  | 'review_turn_ended'
  | 'review_lost'
> = {
  /** Restarts the timer, because time in the queue doesn't count. */
  validation_began(view, { claim, step }) {
    const stale = refuseStale(view, claim, step)
    if (stale !== undefined) return stale
    const { task, settings } = view
    const ms = step === 'checks' ? settings.checksMs : settings.judgeMs[task.judge!.kind]
    return accept({ ...task, due: { kind: 'validation', at: view.now + ms } })
  },

  checks_passed(view, { claim, evidence: text, findings }) {
    const stale = refuseStale(view, claim, 'checks')
    if (stale !== undefined) return stale
    const passed = { step: 'checks', outcome: 'passed', text, ...(findings && { findings }) } as const
    return askJudge(view, withEvidence(view, view.task, passed))
  },

  checks_failed(view, { claim, evidence: text, findings }) {
    const stale = refuseStale(view, claim, 'checks')
    return stale ?? reject(view, view.task, { step: 'checks', text, ...(findings && { findings }) })
  },

  judged(view, { claim, completed, reason: text, by: sender }) {
    const stale = refuseStale(view, claim, 'judge')
    if (stale !== undefined) return stale
    const { task } = view
    // The service sends a model's judgement.
    const by = sender === ORCHESTRATOR ? task.judge!.name : sender
    if (!completed) return reject(view, task, { step: 'judge', text, by })
    return complete(view, withEvidence(view, task, { step: 'judge', outcome: 'passed', text, by }), text)
  },

  validation_gave_up(view, { claim, why }) {
    return refuseStale(view, claim) ?? giveUp(view, why)
  },

  validation_timed_out(view) {
    const { due, id, claim, judge } = view.task
    if (due?.kind !== 'validation' || due.at > view.now || claim === null) {
      return refuse('STALE', `${id} is not being validated`)
    }
    const who = claim.step === 'judge' && judge !== null ? judge.name : 'its checks'
    return giveUp(view, `${who} gave no result in time`)
  },

  review_taken({ task }) {
    const review = task.claim?.review
    if (review === undefined) return noReview(task)
    if (review.taken) return refuse('DUPLICATE', `${task.id} was already taken for review`)
    return accept(withReview(task, { ...review, taken: true }))
  },

  /** The reviewer ended a turn that had the claim in it, without a judgement: remind it, then give up. */
  review_turn_ended(view, { lastWords }) {
    const { task } = view
    const review = task.claim?.review
    if (review === undefined) return noReview(task)
    if (!review.taken) return accept(task)
    if (review.reminders < view.settings.maxReminders) {
      return askReviewer(view, task, reviewReminderText(task), review.reminders + 1)
    }
    return giveUp(view, forgotToJudgeText(task, review.reminders, lastWords))
  },

  review_lost(view, { why }) {
    const { task } = view
    if (task.claim?.review === undefined) return noReview(task)
    return giveUp(view, `${task.judge!.name} cannot judge it: ${why}`)
  },
}
