/** Whether the service may perform a proposal, and what stops the team: AI-PAUSE, and too many failures in a row. */
import type { ActionKind, ActionPolicy } from '../team-settings.ts'
import { type ActionProposal, numberOf, type RepositoryAction } from './action.ts'

type Policies = Readonly<Record<ActionKind, ActionPolicy>>

export const DEFAULT_POLICIES: Policies = {
  label: { mode: 'autonomous', quorum: 1 },
  comment: { mode: 'autonomous', quorum: 1 },
  review: { mode: 'notice', quorum: 1 },
  branch: { mode: 'notice', quorum: 1 },
  pull_request: { mode: 'approval', quorum: 1 },
  close: { mode: 'approval', quorum: 1 },
}

/** The work that the proposal comes from. */
interface ProposalContext {
  readonly threshold: number
  readonly requiresHitl: boolean
  /** The action is on another thread than the work. */
  readonly isElsewhere?: boolean
  /** The agent asks for human review. */
  readonly wantsReview: boolean
}

export type PolicyDecision =
  | { readonly verdict: 'act'; readonly notice: boolean; readonly reason: string }
  | { readonly verdict: 'ask'; readonly quorum: number; readonly reason: string }
  | { readonly verdict: 'refuse'; readonly reason: string }

/** The governance of a repository, and code that runs in its name, need the approval of two people. */
const CRITICAL_LABELS = /^(?:security|breaking|release|governance)/i
const CRITICAL_BRANCHES = /^(?:main|master|release|hotfix)(?:[/-]|$)/i
const CRITICAL_FILES =
  /^\.github\/|(?:^|\/)(?:LICENSE|SECURITY|GOVERNANCE|CODEOWNERS|CODE_OF_CONDUCT|MAINTAINERS)(?:\.\w+)?$/i
const CRITICAL_QUORUM = 2

export function judge(
  proposal: ActionProposal,
  policy: ActionPolicy,
  about: ProposalContext,
): PolicyDecision {
  const { action, confidence } = proposal
  if (policy.mode === 'prohibited') {
    return { verdict: 'refuse', reason: `the policy prohibits ${action.kind}` }
  }
  const critical = isCritical(proposal)
  const quorum = Math.max(policy.quorum, critical ? CRITICAL_QUORUM : 1)
  const ask = (reason: string): PolicyDecision => ({ verdict: 'ask', quorum, reason })
  if (critical) return ask('it is critical')
  if (policy.mode === 'approval') return ask(`the policy asks people about every ${action.kind}`)
  if (about.isElsewhere) return ask('it is about another thread than the task of the agent')
  if (about.requiresHitl) return ask('the task requires approval')
  if (about.wantsReview) return ask('the agent asks for human review')
  const least = Math.max(policy.confidence ?? 0, about.threshold)
  if (confidence === undefined) return ask('the agent states no confidence')
  if (!(confidence >= least)) return ask(`confidence ${confidence} is below ${least}`)
  return {
    verdict: 'act',
    notice: policy.mode === 'notice',
    reason: `confidence ${confidence}, at least ${least}`,
  }
}

/** The author of an issue could talk an agent into acting on other threads. `number`: the thread of the work. */
export function isElsewhere(action: RepositoryAction, number: number | null | undefined): boolean {
  return (number ?? undefined) !== undefined && (numberOf(action) ?? number) !== number
}

function isCritical({ action }: ActionProposal): boolean {
  if (action.kind === 'label') return CRITICAL_LABELS.test(action.label)
  if (action.kind !== 'branch' && action.kind !== 'pull_request') return false
  const branch = action.kind === 'branch' ? action.branch : action.head
  return (
    CRITICAL_BRANCHES.test(branch) || (action.files?.some(({ path }) => CRITICAL_FILES.test(path)) ?? false)
  )
}

/** The service never performs these, whatever the policy says; they get a refusal of their own (issue 6, §3). */
const FORBIDDEN =
  /(?:^|_)(?:merge[sd]?|force_push(?:ed)?|delete[sd]?|setting(?:s|_changed)?|ban(?:ned)?|block(?:ed)?|transfer(?:red)?|lock(?:ed)?)(?:_|$)/i

export function isNeverDone(type: string): boolean {
  return FORBIDDEN.test(type)
}

const SECRET: PolicyDecision = {
  verdict: 'refuse',
  reason: 'a file or a name contains what looks like a secret',
}

interface PolicySettings {
  readonly actions: Readonly<Partial<Record<ActionKind, ActionPolicy>>>
  readonly confidence: number
}

/** Applies the policy of orc.yaml to a proposal of an agent or to a person's change of it. */
export function judgeProposal(
  { actions, confidence: threshold }: PolicySettings,
  redact: (text: string) => string,
  proposal: ActionProposal,
  about: Omit<ProposalContext, 'threshold'>,
): PolicyDecision {
  const { action } = proposal
  // Comments are redacted before they are posted; redacting a name or a file would break it.
  if (namesAndFiles(action).some((text) => redact(text) !== text)) return SECRET
  return judge(proposal, actions[action.kind] ?? DEFAULT_POLICIES[action.kind], { threshold, ...about })
}

function namesAndFiles(action: RepositoryAction): string[] {
  const { files = [], ...rest } = action as { files?: readonly { path: string; content: string }[] }
  const names = Object.entries(rest).flatMap(([field, value]) =>
    typeof value === 'string' && field !== 'body' && field !== 'message' ? [value] : [],
  )
  return [...names, ...files.flatMap(({ path, content }) => [path, content])]
}

/** A label on a thread, or a topic of the repository, in any case. */
const PAUSE = 'AI-PAUSE'

export function isPaused(labels: readonly string[], topics: readonly string[]): boolean {
  return [...labels, ...topics].some((word) => word.trim().toLowerCase() === PAUSE.toLowerCase())
}

/** After more failures in a row than this, an agent gets no work until a person resumes it. */
const MAX_FAILURES = 5

/** The agent's failures in a row. A suspended agent gets no work. */
export interface FailureStreak {
  readonly failures: number
  readonly isSuspended: boolean
}

export const NO_FAILURES: FailureStreak = { failures: 0, isSuspended: false }

/** A success resets the count but not the suspension, which only a person ends. */
export function afterOutcome(before: FailureStreak, outcome: 'success' | 'failure'): FailureStreak {
  if (outcome === 'success') return { ...before, failures: 0 }
  const failures = before.failures + 1
  return { failures, isSuspended: before.isSuspended || failures > MAX_FAILURES }
}
