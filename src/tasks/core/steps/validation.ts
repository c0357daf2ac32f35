/** A REPORT of completed is a claim, validated in order: schema → checks → judge (C22). Only then is the task done. */
import { ORCHESTRATOR } from '../../../base/agent.ts'
import type { Task } from '../../task.ts'
import type { TaskSettings } from '../settings.ts'
import type { Refusal, View } from '../view.ts'
import { complete, giveUp, reject, withEvidence } from './claims.ts'
import { type Done, done, type Handlers, refuse } from './outcome.ts'
import { settle } from './resting.ts'
import { askReviewer } from './reviewing.ts'

/** Begins with the checks; what isn't configured is skipped, and the record says so. */
export function validate(view: View, task: Task, settings: TaskSettings): Done {
  if (task.checks.length === 0) {
    const skipped = { step: 'checks', outcome: 'skipped', text: 'no checks were declared' } as const
    return askJudge(view, withEvidence(view, task, skipped), settings)
  }
  const due = { kind: 'validation', at: view.now + settings.checksMs } as const
  return done(settle(view, { ...task, due }, settings))
}

function askJudge(view: View, task: Task, settings: TaskSettings): Done {
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
    due: { kind: 'validation', at: view.now + settings.judgeMs[judge.kind] },
  }
  if (judge.kind === 'agent') return askReviewer(view, asked, settings)
  return done(settle(view, asked, settings))
}

/** Is this result about the claim that is still in question, and the step it has come to? */
function refuseStale({ task }: View, claim: number, step?: 'checks' | 'judge'): Refusal | undefined {
  const isCurrent = task.claim?.number === claim && (step === undefined || task.claim.step === step)
  return isCurrent ? undefined : refuse('STALE', `${task.id} has no claim ${claim} that waits for this`)
}

export const validation: Pick<
  Handlers,
  | 'validation_began'
  | 'checks_passed'
  | 'checks_failed'
  | 'judged'
  | 'validation_gave_up'
  | 'validation_timed_out'
> = {
  /** The time in which it stood in line is not its own. */
  validation_began(view, { claim, step }, settings) {
    const stale = refuseStale(view, claim, step)
    if (stale !== undefined) return stale
    const { task } = view
    const ms = step === 'checks' ? settings.checksMs : settings.judgeMs[task.judge!.kind]
    return done({ ...task, due: { kind: 'validation', at: view.now + ms } })
  },

  checks_passed(view, { claim, evidence: text, findings }, settings) {
    const stale = refuseStale(view, claim, 'checks')
    if (stale !== undefined) return stale
    const passed = { step: 'checks', outcome: 'passed', text, ...(findings && { findings }) } as const
    return askJudge(view, withEvidence(view, view.task, passed), settings)
  },

  checks_failed(view, { claim, evidence: text, findings }, settings) {
    const stale = refuseStale(view, claim, 'checks')
    return stale ?? reject(view, view.task, { step: 'checks', text, ...(findings && { findings }) }, settings)
  },

  judged(view, { claim, completed, reason: text, by: said }, settings) {
    const stale = refuseStale(view, claim, 'judge')
    if (stale !== undefined) return stale
    const { task } = view
    // A model speaks through the service.
    const by = said === ORCHESTRATOR ? task.judge!.name : said
    if (!completed) return reject(view, task, { step: 'judge', text, by }, settings)
    return complete(view, withEvidence(view, task, { step: 'judge', outcome: 'passed', text, by }), text)
  },

  validation_gave_up(view, { claim, why }, settings) {
    return refuseStale(view, claim) ?? giveUp(view, why, settings)
  },

  validation_timed_out(view, _, settings) {
    const { due, id, claim, judge } = view.task
    if (due?.kind !== 'validation' || due.at > view.now || claim === null) {
      return refuse('STALE', `${id} is not being validated`)
    }
    const who = claim.step === 'judge' && judge !== null ? judge.name : 'its checks'
    return giveUp(view, `nothing came of ${who} in time`, settings)
  },
}
