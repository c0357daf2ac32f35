/** Conduct flags are removed from a report before any of it is stored (S3.14, S3.15). */
interface SeparatedConduct {
  /** The report without the flags. */
  readonly rest: string
  readonly flags: readonly Record<string, unknown>[]
}

const TYPE = 'coc_violation_flag'

/** Stored for every report without proposals, flagged or not: a difference would reveal the flagged ones. */
export const EMPTY_REPORT = JSON.stringify({
  status: 'success',
  confidence_score: 1,
  actions_taken: [],
  rationale: 'No action is proposed.',
})

/** Undefined without a flag. In a confidential role, a request for human review counts as a flag too. */
export function separateConduct(said: unknown, isConfidential = false): SeparatedConduct | undefined {
  const messages = (Array.isArray(said) ? said : [said]).filter(isRecord)
  const flags = messages.filter(({ message_type }) => message_type === TYPE)
  const others = messages.filter(({ message_type }) => message_type !== TYPE)
  const hints = others.filter(
    (one) => hasConcern(one) || (isConfidential && one.requires_human_review === true),
  )
  if (flags.length === 0 && hints.length === 0) return undefined
  // The rest of a flagged report could still hint at the flag, so its proposals are dropped.
  return { rest: EMPTY_REPORT, flags: flags.length > 0 ? flags : hints.map(hintOf) }
}

/** A report without proposals, requests and findings. */
export function isEmptyReport(said: unknown): boolean {
  if (!isRecord(said) || said.status === 'failure' || said.requires_human_review === true) return false
  const { actions_taken: actions, flags } = said
  if (Array.isArray(actions) && actions.length > 0) return false
  return !isRecord(flags) || Object.values(flags).every((one) => !one)
}

/** Replaces an invalid flag, so that it reaches moderators too. */
export function replacementFlag(flag: Record<string, unknown>): Record<string, unknown> {
  return {
    violation: {
      severity: 'low',
      confidence: 0,
      violation_type: 'other',
      location: 'the thread of the task',
    },
    context: { excerpt: JSON.stringify(flag).slice(0, 4000) },
    recommended_action: 'Look at the thread: the flag is invalid and quoted as the agent sent it.',
  }
}

/** For an agent that reports a concern without details. */
function hintOf({ rationale, human_review_reason }: Record<string, unknown>): Record<string, unknown> {
  const words = [rationale, human_review_reason].filter((one) => typeof one === 'string').join('\n')
  return {
    violation: {
      severity: 'low',
      confidence: 0,
      violation_type: 'other',
      location: 'the thread of the task',
    },
    ...(words === '' ? {} : { context: { excerpt: words.slice(0, 2000) } }),
    recommended_action: 'Look at the thread: the agent reports a concern without details.',
  }
}

function hasConcern({ flags }: Record<string, unknown>): boolean {
  const concern = isRecord(flags) ? flags.coc_concern : undefined
  return concern !== undefined && concern !== false && concern !== null && concern !== ''
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
