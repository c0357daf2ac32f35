/** Flags about people's conduct are taken out of a report before anything of it is kept (S3.14, S3.15). */
export interface Parted {
  /** The report without a word of them. */
  readonly rest: string
  readonly flags: readonly Record<string, unknown>[]
}

const TYPE = 'coc_violation_flag'
const SILENT = { status: 'success', confidence_score: 1, actions_taken: [], rationale: 'Looked at.' }

/** Undefined where there is none: then the report is kept as it was said. */
export function partConduct(said: unknown): Parted | undefined {
  const messages = (Array.isArray(said) ? said : [said]).filter(isRecord)
  const flags = messages.filter(({ message_type }) => message_type === TYPE)
  const others = messages.filter(({ message_type }) => message_type !== TYPE)
  const hints = others.filter(hasConcern)
  if (flags.length === 0 && hints.length === 0) return undefined
  const rest = others.length === 0 ? SILENT : others.map(discreet)
  return { rest: JSON.stringify(rest), flags: flags.length > 0 ? flags : hints.map(hintOf) }
}

/** An agent that only says that there is something: people look for themselves. */
function hintOf({ rationale }: Record<string, unknown>): Record<string, unknown> {
  return {
    violation: {
      severity: 'low',
      confidence: 0,
      violation_type: 'other',
      location: 'the thread of the task',
    },
    ...(typeof rationale === 'string' ? { context: { excerpt: rationale.slice(0, 1000) } } : {}),
    recommended_action: 'Look at the thread: the agent sees a concern and says no more.',
  }
}

/** Its words about everything else could still tell of it; and nothing is done in public beside a flag. */
function discreet({ flags: _, human_review_reason: __, next_steps: ___, ...said }: Record<string, unknown>) {
  return { ...said, rationale: SILENT.rationale, requires_human_review: false, actions_taken: [] }
}

function hasConcern({ flags }: Record<string, unknown>): boolean {
  const concern = isRecord(flags) ? flags.coc_concern : undefined
  return concern !== undefined && concern !== false && concern !== null && concern !== ''
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
