/** A REPORT of completed is a claim, validated in order: schema → checks → judge (C22). Only then is the task done. */
import type { Evidence, Task } from '../../model/task.ts'
import type { TaskSettings } from '../settings.ts'
import type { Refusal, View } from '../view.ts'
import { gaveUpText, rejectionText } from '../wording.ts'
import { end } from './ending.ts'
import { also, type Done, done, type Handlers, refuse, workerOf } from './outcome.ts'
import { seekHelp } from './pleading.ts'
import { settle } from './resting.ts'
import { sendToWorker } from './worker.ts'

/** Goes on to the next step there is; what isn't configured is skipped, and the record says so. */
export function validate(view: View, task: Task, settings: TaskSettings): Done {
  const { claim, checks, judge } = task
  if (claim === null) throw new Error(`${task.id} has no claim to validate`)
  if (claim.step === 'checks' && checks.length > 0) return done(settle(view, task, settings))
  if (judge !== null) {
    return done(settle(view, { ...task, claim: { ...claim, step: 'judge' } }, settings))
  }
  const text = 'no judge is configured; that step was skipped'
  const reason = checks.length > 0 ? 'reported, and its checks passed' : 'reported'
  return also(complete(view, task, reason), { type: 'note', task: task.id, text })
}

export function complete(view: View, task: Task, reason: string): Done {
  const result = task.claim?.result ?? task.result
  return end(view, { ...task, result }, { state: 'completed', reason, by: workerOf(task) })
}

/** The claim is off the table; what it said is kept, and working time begins anew. */
function unclaimed(task: Task): Task {
  const result = task.claim?.result ?? task.result
  return { ...task, result, claim: null, due: null, remainingMs: task.timeoutMs }
}

/** Back to the worker with the reason, up to the retry limit; then the delegator decides. */
export function reject(view: View, task: Task, evidence: Evidence, settings: TaskSettings): Done {
  const claimed: Task = { ...unclaimed(task), evidence: [...task.evidence, evidence] }
  if (claimed.rejections < claimed.maxAttempts - 1) {
    const again = { ...claimed, rejections: claimed.rejections + 1 }
    const sent = sendToWorker(again, 'follow_up', rejectionText(again, evidence.text))
    return done(settle(view, sent.task, settings), sent.effect)
  }
  return leaveToDelegator(view, claimed, evidence.text, 'validation failed', settings)
}

function leaveToDelegator(view: View, task: Task, why: string, reason: string, settings: TaskSettings): Done {
  const id = `${task.id}/claim/${task.claims}`
  return seekHelp(view, task, { id, kind: 'needs_help', text: gaveUpText(task, why), reason }, settings)
}

function giveUp(view: View, why: string, settings: TaskSettings): Done {
  const text = `it could not be validated: ${why}`
  return leaveToDelegator(view, unclaimed(view.task), text, 'validation gave up', settings)
}

/** Is this result about the claim that is still in question, and the step it has come to? */
function refuseStale({ task }: View, claim: number, step?: 'checks' | 'judge'): Refusal | undefined {
  const isCurrent = task.claim?.number === claim && (step === undefined || task.claim.step === step)
  return isCurrent ? undefined : refuse('STALE', `${task.id} has no such claim under validation`)
}

export const validation: Pick<
  Handlers,
  | 'checks_passed'
  | 'checks_failed'
  | 'judged'
  | 'judge_skipped'
  | 'validation_gave_up'
  | 'validation_timed_out'
> = {
  checks_passed(view, { claim, evidence: text }, settings) {
    const stale = refuseStale(view, claim, 'checks')
    if (stale !== undefined) return stale
    const { task } = view
    const evidence: Evidence[] = [...task.evidence, { step: 'checks', passed: true, text }]
    return validate(view, { ...task, evidence, claim: { ...task.claim!, step: 'judge' } }, settings)
  },

  checks_failed(view, { claim, evidence: text }, settings) {
    const stale = refuseStale(view, claim, 'checks')
    return stale ?? reject(view, view.task, { step: 'checks', passed: false, text }, settings)
  },

  judged(view, { claim, completed, reason: text }, settings) {
    const stale = refuseStale(view, claim, 'judge')
    if (stale !== undefined) return stale
    const evidence: Evidence = { step: 'judge', passed: completed, text }
    if (!completed) return reject(view, view.task, evidence, settings)
    return complete(view, { ...view.task, evidence: [...view.task.evidence, evidence] }, text)
  },

  judge_skipped(view, { claim, why }) {
    const stale = refuseStale(view, claim, 'judge')
    if (stale !== undefined) return stale
    const note = { type: 'note', task: view.task.id, text: `the judge was skipped: ${why}` } as const
    return also(complete(view, view.task, `reported; not judged: ${why}`), note)
  },

  validation_gave_up(view, { claim, why }, settings) {
    return refuseStale(view, claim) ?? giveUp(view, why, settings)
  },

  validation_timed_out(view, _, settings) {
    const { due, id } = view.task
    if (due?.kind !== 'validation' || due.at > view.now) {
      return refuse('STALE', `${id} is not being validated`)
    }
    return giveUp(view, `nothing came of it within ${settings.validationMs / 1000} s`, settings)
  },
}
