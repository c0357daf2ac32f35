/** Reports of the worker, reminders after a silent turn, and the validation of claims. */
import { ORCHESTRATOR } from '../../base/agent.ts'
import { type ClaimEvidence, type ClaimReview, isEnd, type Task } from '../task.ts'
import {
  forgotText,
  forgotToJudgeText,
  rejectionText,
  reminderText,
  reviewReminderText,
  reviewText,
  unvalidatedText,
} from './message-texts.ts'
import { type HelpRequest, refuseQuestion, requestHelp, withdrawHelp, withoutHelp } from './questions.ts'
import { type RefusedEvent, refuse } from './refusal.ts'
import type { TaskSnapshot } from './snapshot.ts'
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

/** Reports of the worker, and turns that end without one. */
export const reportHandlers: Pick<TaskEventHandlers, 'reported' | 'turn_ended'> = {
  reported(snapshot, event) {
    const isClaim = event.status === 'completed'
    const refused = refuseReport(snapshot, event.report, isClaim)
    if (refused !== undefined) return refused
    const task: Task = { ...started(snapshot, snapshot.task), seen: [...snapshot.task.seen, event.report] }
    const result = isClaim
      ? claimCompleted(snapshot, task, event.result, event.problem)
      : requestHelp(snapshot, { ...task, result: event.result }, helpRequestOf(task, event))
    // Any report shows that the worker works, so it closes the circuit.
    if (task.takenOver) return result
    return prepend(result, { type: 'record_outcome', agent: task.agent, outcome: 'success' })
  },

  /** Models often forget to report (ask 5): remind the worker up to the limit, then ask the delegator. */
  turn_ended(snapshot, { responded, lastWords }) {
    const { task } = snapshot
    const isIdle = task.state === 'executing' && task.claim === null && !task.unread
    if (!isIdle) return accept(task)
    if (restingState(task, snapshot.children) !== 'executing') return accept(updateState(snapshot, task))
    if (responded) return accept(task)
    if (task.reminders < snapshot.settings.maxReminders) {
      const waiting = snapshot.children.filter((child) => child.requiresResponse && !isEnd(child.state))
      const sent = sendToWorker(task, 'reminder', reminderText(task, waiting))
      return accept({ ...sent.task, reminders: task.reminders + 1 }, sent.effect)
    }
    return requestHelp(snapshot, task, {
      id: `${task.id}/silent/${task.version}`,
      kind: 'needs_help',
      text: forgotText(task, lastWords),
      reason: `${task.agent} did not report`,
    })
  },
}

/** A worker that has asked too often may still report completed, for a limited number of times. */
function refuseReport(snapshot: TaskSnapshot, id: string, isClaim: boolean): RefusedEvent | undefined {
  const { task, settings } = snapshot
  const refused = refuseQuestion(snapshot, id)
  if (!isClaim || (refused !== undefined && refused.refusal.code !== 'TOO_MANY')) return refused
  if (task.claims < settings.maxQuestions) return undefined
  return refuse('TOO_MANY', `${task.id} was reported ${task.claims} times; its delegator decides now`)
}

function helpRequestOf(task: Task, event: { report: string; status: string; result: string }): HelpRequest {
  const kind = event.status === 'partial' ? 'report' : 'needs_help'
  const reason = `${task.agent} reports ${event.status}`
  return { id: event.report, kind, text: event.result, reason }
}

function claimCompleted(
  snapshot: TaskSnapshot,
  task: Task,
  result: string,
  problem: string | undefined,
): Accepted {
  const number = task.claims + 1
  const claimed: Task = {
    ...withoutHelp(task),
    claims: number,
    claim: { number, result, step: 'checks' },
  }
  const wrong = problem ?? (result.trim() === '' ? 'the result is empty' : undefined)
  if (wrong !== undefined) {
    return prepend(reject(snapshot, claimed, { step: 'schema', text: wrong }), ...withdrawHelp(task))
  }
  const valid = withEvidence(snapshot, claimed, {
    step: 'schema',
    outcome: 'passed',
    text:
      task.resultSchema === null || task.takenOver ? 'the report is not empty' : 'the result fits its schema',
  })
  // A person's report needs no judge.
  if (task.takenOver) return complete(snapshot, valid, 'a person finished it')
  // `updateState` saves the working time before `validate` sets the claim's timer.
  return prepend(validate(snapshot, updateState(snapshot, valid)), ...withdrawHelp(task))
}

type NewEvidence = Omit<ClaimEvidence, 'claim' | 'at'>

function withEvidence({ now }: TaskSnapshot, task: Task, evidence: NewEvidence): Task {
  return { ...task, evidence: [...task.evidence, { claim: task.claims, at: now, ...evidence }] }
}

/** Starts with the checks. A step that isn't configured is skipped, with evidence that says so. */
export function validate(snapshot: TaskSnapshot, task: Task): Accepted {
  if (task.checks.length === 0) {
    const skipped = { step: 'checks', outcome: 'skipped', text: 'no checks were declared' } as const
    return askJudge(snapshot, withEvidence(snapshot, task, skipped))
  }
  const due = { kind: 'validation', at: snapshot.now + snapshot.settings.checksMs } as const
  return accept(updateState(snapshot, { ...task, due }))
}

function askJudge(snapshot: TaskSnapshot, task: Task): Accepted {
  const { judge, checks } = task
  const isOwn = judge?.kind === 'agent' && judge.name === task.agent
  if (judge === null || isOwn) {
    const text = isOwn ? `${judge.name} does not judge its own work` : 'no judge is configured'
    const reason = checks.length > 0 ? 'reported, and its checks passed' : 'reported'
    return complete(
      snapshot,
      withEvidence(snapshot, task, { step: 'judge', outcome: 'skipped', text }),
      reason,
    )
  }
  const asked: Task = {
    ...task,
    claim: { ...task.claim!, step: 'judge' },
    due: { kind: 'validation', at: snapshot.now + snapshot.settings.judgeMs[judge.kind] },
  }
  if (judge.kind === 'agent') return askReviewer(snapshot, asked, reviewText(asked), 0)
  return accept(updateState(snapshot, asked))
}

function askReviewer(snapshot: TaskSnapshot, task: Task, text: string, reminders: number): Accepted {
  const asked = withReview(task, { taken: false, reminders })
  const to = task.judge!.name
  const effect = { type: 'send', kind: 'review', to, text, wake: true } as const
  return accept(updateState(snapshot, asked), effect)
}

function withReview(task: Task, review: ClaimReview): Task {
  return { ...task, claim: { ...task.claim!, review } }
}

export function complete(snapshot: TaskSnapshot, task: Task, reason: string): Accepted {
  const result = task.claim?.result ?? task.result
  return end(snapshot, { ...task, result }, { state: 'completed', reason, by: workerOf(task) })
}

/** Ends the claim, keeps its result, and restarts the working time. */
function withoutClaim(task: Task): Task {
  const result = task.claim?.result ?? task.result
  return { ...task, result, claim: null, due: null, remainingMs: task.timeoutMs }
}

/** Returns the claim to the worker with the reason, up to the retry limit; then the delegator decides. */
export function reject(snapshot: TaskSnapshot, task: Task, found: Omit<NewEvidence, 'outcome'>): Accepted {
  const unclaimed = withEvidence(snapshot, withoutClaim(task), { ...found, outcome: 'failed' })
  if (unclaimed.rejections < unclaimed.maxAttempts - 1) {
    const again = { ...unclaimed, rejections: unclaimed.rejections + 1 }
    const sent = sendToWorker(again, 'follow_up', rejectionText(again, found.text))
    return accept(updateState(snapshot, sent.task), sent.effect)
  }
  return leaveToDelegator(snapshot, unclaimed, found.text, 'validation failed')
}

/** A claim that could not be validated is neither accepted nor returned to the worker: the delegator decides. */
function giveUp(snapshot: TaskSnapshot, why: string): Accepted {
  const { task } = snapshot
  const evidence = { step: task.claim!.step, outcome: 'unavailable', text: why } as const
  const left = withEvidence(snapshot, withoutClaim(task), evidence)
  return leaveToDelegator(snapshot, left, `it could not be validated: ${why}`, 'validation gave up')
}

function leaveToDelegator(snapshot: TaskSnapshot, task: Task, why: string, reason: string): Accepted {
  const id = `${task.id}/claim/${task.claims}`
  return requestHelp(snapshot, task, { id, kind: 'needs_help', text: unvalidatedText(task, why), reason })
}

/** Refuses results about another claim, or about another step of it. */
function refuseStale(
  { task }: TaskSnapshot,
  claim: number,
  step?: 'checks' | 'judge',
): RefusedEvent | undefined {
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
  validation_began(snapshot, { claim, step }) {
    const stale = refuseStale(snapshot, claim, step)
    if (stale !== undefined) return stale
    const { task, settings } = snapshot
    const ms = step === 'checks' ? settings.checksMs : settings.judgeMs[task.judge!.kind]
    return accept({ ...task, due: { kind: 'validation', at: snapshot.now + ms } })
  },

  checks_passed(snapshot, { claim, evidence: text, findings }) {
    const stale = refuseStale(snapshot, claim, 'checks')
    if (stale !== undefined) return stale
    const passed = { step: 'checks', outcome: 'passed', text, ...(findings && { findings }) } as const
    return askJudge(snapshot, withEvidence(snapshot, snapshot.task, passed))
  },

  checks_failed(snapshot, { claim, evidence: text, findings }) {
    const stale = refuseStale(snapshot, claim, 'checks')
    return stale ?? reject(snapshot, snapshot.task, { step: 'checks', text, ...(findings && { findings }) })
  },

  judged(snapshot, { claim, completed, reason: text, by: sender }) {
    const stale = refuseStale(snapshot, claim, 'judge')
    if (stale !== undefined) return stale
    const { task } = snapshot
    // The service sends a model's judgement.
    const by = sender === ORCHESTRATOR ? task.judge!.name : sender
    if (!completed) return reject(snapshot, task, { step: 'judge', text, by })
    return complete(
      snapshot,
      withEvidence(snapshot, task, { step: 'judge', outcome: 'passed', text, by }),
      text,
    )
  },

  validation_gave_up(snapshot, { claim, why }) {
    return refuseStale(snapshot, claim) ?? giveUp(snapshot, why)
  },

  validation_timed_out(snapshot) {
    const { due, id, claim, judge } = snapshot.task
    if (due?.kind !== 'validation' || due.at > snapshot.now || claim === null) {
      return refuse('STALE', `${id} is not being validated`)
    }
    const who = claim.step === 'judge' && judge !== null ? judge.name : 'its checks'
    return giveUp(snapshot, `${who} gave no result in time`)
  },

  review_taken({ task }) {
    const review = task.claim?.review
    if (review === undefined) return noReview(task)
    if (review.taken) return refuse('DUPLICATE', `${task.id} was already taken for review`)
    return accept(withReview(task, { ...review, taken: true }))
  },

  /** The reviewer ended a turn that had the claim in it, without a judgement: remind it, then give up. */
  review_turn_ended(snapshot, { lastWords }) {
    const { task } = snapshot
    const review = task.claim?.review
    if (review === undefined) return noReview(task)
    if (!review.taken) return accept(task)
    if (review.reminders < snapshot.settings.maxReminders) {
      return askReviewer(snapshot, task, reviewReminderText(task), review.reminders + 1)
    }
    return giveUp(snapshot, forgotToJudgeText(task, review.reminders, lastWords))
  },

  review_lost(snapshot, { why }) {
    const { task } = snapshot
    if (task.claim?.review === undefined) return noReview(task)
    return giveUp(snapshot, `${task.judge!.name} cannot judge it: ${why}`)
  },
}
