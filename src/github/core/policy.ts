import type { ActionKind, ActionPolicy } from '../terms.ts'
import { NEVER, type Proposal } from './action.ts'

export type Policies = Readonly<Record<ActionKind, ActionPolicy>>

export const DEFAULT_POLICIES: Policies = {
  label: { mode: 'autonomous', quorum: 1 },
  comment: { mode: 'autonomous', quorum: 1 },
  review: { mode: 'notice', quorum: 1 },
  branch: { mode: 'notice', quorum: 1 },
  pull_request: { mode: 'approval', quorum: 1 },
  close: { mode: 'approval', quorum: 1 },
}

/** How the work stands that the proposal comes from. */
export interface Circumstances {
  readonly threshold: number
  readonly requiresHitl: boolean
  /** It is about another thread than the work it comes from. */
  readonly isElsewhere?: boolean
  /** The agent itself wants people to look at it. */
  readonly wantsReview: boolean
}

export type Judged =
  | { readonly verdict: 'act'; readonly notice: boolean; readonly reason: string }
  | { readonly verdict: 'ask'; readonly quorum: number; readonly reason: string }
  | { readonly verdict: 'refuse'; readonly reason: string }

/** What one person must not decide alone: how the repository is governed and what runs in its name. */
const CRITICAL_LABELS = /^(?:security|breaking|release|governance)/i
const CRITICAL_BRANCHES = /^(?:main|master|release|hotfix)(?:[/-]|$)/i
const CRITICAL_FILES =
  /^\.github\/|(?:^|\/)(?:LICENSE|SECURITY|GOVERNANCE|CODEOWNERS|CODE_OF_CONDUCT|MAINTAINERS)(?:\.\w+)?$/i
export const CRITICAL_QUORUM = 2

export function judge(proposal: Proposal, policy: ActionPolicy, about: Circumstances): Judged {
  const { action, confidence } = proposal
  if (policy.mode === 'prohibited') {
    return { verdict: 'refuse', reason: `the policy prohibits ${action.kind}` }
  }
  const critical = isCritical(proposal)
  const quorum = Math.max(policy.quorum, critical ? CRITICAL_QUORUM : 1)
  const ask = (reason: string): Judged => ({ verdict: 'ask', quorum, reason })
  if (critical) return ask('it is critical')
  if (policy.mode === 'approval') return ask(`the policy asks people about every ${action.kind}`)
  if (about.isElsewhere) return ask('it is about another thread than the one the agent was asked about')
  if (about.requiresHitl) return ask('the task wants a person to decide')
  if (about.wantsReview) return ask('the agent wants a person to look at it')
  const least = Math.max(policy.confidence ?? 0, about.threshold)
  if (confidence === undefined) return ask('the agent does not say how sure it is')
  if (!(confidence >= least)) return ask(`confidence ${confidence} is below ${least}`)
  return {
    verdict: 'act',
    notice: policy.mode === 'notice',
    reason: `confidence ${confidence}, at least ${least}`,
  }
}

function isCritical({ action }: Proposal): boolean {
  if (action.kind === 'label') return CRITICAL_LABELS.test(action.label)
  if (action.kind !== 'branch' && action.kind !== 'pull_request') return false
  const branch = action.kind === 'branch' ? action.branch : action.head
  return (
    CRITICAL_BRANCHES.test(branch) || (action.files?.some(({ path }) => CRITICAL_FILES.test(path)) ?? false)
  )
}

/** Words of agents for what nobody gets done; they are refused with a reason of their own. */
const FORBIDDEN =
  /(?:^|_)(?:merge[sd]?|force_push(?:ed)?|delete[sd]?|setting(?:s|_changed)?|ban(?:ned)?|block(?:ed)?|transfer(?:red)?|lock(?:ed)?)(?:_|$)/i

export function isNeverDone(type: string): boolean {
  return FORBIDDEN.test(type) || (NEVER as readonly string[]).includes(type)
}
