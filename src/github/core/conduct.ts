/** Flags about people's conduct are taken out of a report before anything of it is kept (S3.14, S3.15). */
export interface Parted {
  /** The report without a word of them. */
  readonly rest: string
  readonly flags: readonly Record<string, unknown>[]
}

const TYPE = 'coc_violation_flag'

/**
 * What is kept of every report that proposes nothing, with a flag beside it or not: were the words of the others kept,
 * these would tell them apart.
 */
export const QUIET = JSON.stringify({
  status: 'success',
  confidence_score: 1,
  actions_taken: [],
  rationale: 'Nothing is proposed.',
})

/**
 * Undefined where there is none. `isConfidentialRole`: of whoever looks after the tone, a wish that people look is about a person
 * as well.
 */
export function partConduct(said: unknown, isConfidentialRole = false): Parted | undefined {
  const messages = (Array.isArray(said) ? said : [said]).filter(isRecord)
  const flags = messages.filter(({ message_type }) => message_type === TYPE)
  const others = messages.filter(({ message_type }) => message_type !== TYPE)
  const hints = others.filter(
    (one) => hasConcern(one) || (isConfidentialRole && one.requires_human_review === true),
  )
  if (flags.length === 0 && hints.length === 0) return undefined
  // Nothing is done in public beside a flag, and its words about everything else could still tell of it.
  return { rest: QUIET, flags: flags.length > 0 ? flags : hints.map(hintOf) }
}

/** Its report says nothing that anybody needs to know: no proposal, no wish, no gap that it found. */
export function isQuiet(said: unknown): boolean {
  if (!isRecord(said) || said.status === 'failure' || said.requires_human_review === true) return false
  const { actions_taken: actions, flags } = said
  if (Array.isArray(actions) && actions.length > 0) return false
  return !isRecord(flags) || Object.values(flags).every((one) => !one)
}

/** A flag that does not fit the protocol still reaches moderators: what was said of a person is not lost by a slip. */
export function unfitFlag(flag: Record<string, unknown>): Record<string, unknown> {
  return {
    violation: {
      severity: 'low',
      confidence: 0,
      violation_type: 'other',
      location: 'the thread of the task',
    },
    context: { excerpt: JSON.stringify(flag).slice(0, 4000) },
    recommended_action:
      'Look at the thread: the flag does not fit the protocol, and is given as it was said.',
  }
}

/** An agent that only says that there is something: people look for themselves. */
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
    recommended_action: 'Look at the thread: the agent sees a concern and says no more.',
  }
}

function hasConcern({ flags }: Record<string, unknown>): boolean {
  const concern = isRecord(flags) ? flags.coc_concern : undefined
  return concern !== undefined && concern !== false && concern !== null && concern !== ''
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
