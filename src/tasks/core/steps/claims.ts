/** What becomes of a claim: it counts, goes back to the worker, or is left to the delegator. */
import type { Evidence, Task } from '../../task.ts'
import type { TaskSettings } from '../settings.ts'
import type { View } from '../view.ts'
import { gaveUpText, rejectionText } from '../wording.ts'
import { end } from './ending.ts'
import { type Done, done, workerOf } from './outcome.ts'
import { seekHelp } from './pleading.ts'
import { settle } from './resting.ts'
import { sendToWorker } from './worker.ts'

export type Finding = Omit<Evidence, 'claim' | 'at'>

/** Everything that is found out about a claim stays on record, in the order in which it was. */
export function withEvidence({ now }: View, task: Task, finding: Finding): Task {
  return { ...task, evidence: [...task.evidence, { claim: task.claims, at: now, ...finding }] }
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
export function reject(
  view: View,
  task: Task,
  found: Omit<Finding, 'outcome'>,
  settings: TaskSettings,
): Done {
  const claimed = withEvidence(view, unclaimed(task), { ...found, outcome: 'failed' })
  if (claimed.rejections < claimed.maxAttempts - 1) {
    const again = { ...claimed, rejections: claimed.rejections + 1 }
    const sent = sendToWorker(again, 'follow_up', rejectionText(again, found.text))
    return done(settle(view, sent.task, settings), sent.effect)
  }
  return leaveToDelegator(view, claimed, found.text, 'validation failed', settings)
}

/** What could not be validated is neither accepted nor sent back: the delegator decides. */
export function giveUp(view: View, why: string, settings: TaskSettings): Done {
  const { task } = view
  const finding = { step: task.claim!.step, outcome: 'unavailable', text: why } as const
  const left = withEvidence(view, unclaimed(task), finding)
  return leaveToDelegator(view, left, `it could not be validated: ${why}`, 'validation gave up', settings)
}

function leaveToDelegator(view: View, task: Task, why: string, reason: string, settings: TaskSettings): Done {
  const id = `${task.id}/claim/${task.claims}`
  return seekHelp(view, task, { id, kind: 'needs_help', text: gaveUpText(task, why), reason }, settings)
}
