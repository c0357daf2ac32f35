import { isDeepStrictEqual } from 'node:util'
import { AppError } from '../base/errors.ts'
import type { Run } from './core/run.ts'
import type { Plan } from './plan.ts'
import type { SeenRun } from './stored-runs.ts'

export interface ResumeOrder {
  readonly plan?: string
  readonly folder?: string
  readonly file?: string
  readonly concurrency?: number
  readonly fresh?: boolean
  /** The round that is meant. Once it is there, however far, no other is begun. */
  readonly round?: number
}

/** It has not ended, or its report is not written yet. */
export function isOpen({ head }: Run): boolean {
  return head.outcome === null || head.reportOwed
}

/** Why a round that is there already cannot be as it is ordered now; undefined: it is. `asked`: the plan of the order. */
export function cannotChange(
  { id, folder, run }: SeenRun,
  order: ResumeOrder,
  asked: Plan | undefined,
): AppError | undefined {
  const { plan } = run.graph
  // What its plan said of that is not known any more: it may have been ordered otherwise then, too.
  const { concurrency = plan.concurrency } = order
  const changes = [
    ...(asked === undefined || isSamePlan(asked, plan) ? [] : ['another plan']),
    ...((order.folder ?? folder) === folder ? [] : [`another folder than ${folder}`]),
    ...(concurrency === plan.concurrency ? [] : [`another concurrency than ${plan.concurrency}`]),
    ...(order.fresh === true ? ['a fresh start'] : []),
  ]
  if (changes.length === 0) return undefined
  const what = changes.join(' and ')
  return isOpen(run)
    ? new AppError('CONFLICT', `${id} has not ended and goes on as it is: it cannot get ${what}`, {
        hint: `orc run cancel ${id} ends it; the same again then takes it up so. orc run --resume ${id} alone comes back to it.`,
      })
    : new AppError('CONFLICT', `${id} has ended meanwhile, as it was: it did not get ${what}`, {
        hint: 'The same again takes it up so.',
      })
}

/** As they are stored; how many at once is compared by itself. */
function isSamePlan(one: Plan, other: Plan): boolean {
  const stored = (plan: Plan): unknown => JSON.parse(JSON.stringify({ ...plan, concurrency: 0 }))
  return isDeepStrictEqual(stored(one), stored(other))
}
