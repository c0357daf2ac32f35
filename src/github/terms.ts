/** What orc.yaml can say of the GitHub team, and what decides by it. */

/** What the service can do on GitHub for an agent. */
export const ACTION_KINDS = ['label', 'comment', 'review', 'branch', 'pull_request', 'close'] as const
export type ActionKind = (typeof ACTION_KINDS)[number]

/**
 * What may become of a proposal of one kind. `autonomous`: done at or above the confidence. `notice`: the same, and
 * people are told. `approval`: people are asked each time. `prohibited`: never.
 */
export const ACTION_MODES = ['autonomous', 'notice', 'approval', 'prohibited'] as const
export type ActionMode = (typeof ACTION_MODES)[number]

export interface ActionPolicy {
  readonly mode: ActionMode
  /** From here on it is done without asking; the task's own threshold holds where it is higher. */
  readonly confidence?: number
  /** How many different people must approve. */
  readonly quorum: number
}

/** The five of the documents (S3.3). Others bring a role in orc.yaml. */
export const TEAM_ROLES = ['concierge', 'triage', 'lifecycle', 'scribe', 'community'] as const

/** Roles whose output may be about a person's conduct: only moderators read what their agents say (S3.15). */
export const CONFIDENTIAL_ROLES: readonly string[] = ['community'] satisfies (typeof TEAM_ROLES)[number][]

/** Tells a confidential agent how to flag conduct. Part of its prompt and of no task, because others read tasks. */
export const CONFIDENTIAL_PROMPT: readonly string[] = [
  'In the GitHub team: if a text may violate the code of conduct, your result is an array of two objects, your report and',
  '{"message_type": "coc_violation_flag", "violation": {"severity": "high|medium|low", "confidence": 0.85,',
  '"violation_type": "harassment|discrimination|spam|rudeness|other", "location": "issue #1, comment by @login"},',
  '"context": {"excerpt": "the words it is about", "user_history": "…", "thread_context": "…"},',
  '"recommended_action": "…"}. Only moderators read the flag. It triggers no action, and the person is not notified.',
]

/** One agent's part in what an event sets in motion. */
export interface RouteStep {
  /** A role such as triage, or an agent. */
  readonly to: string
  /** All of them must hold. */
  readonly when: readonly string[]
  /** Begins when the step of that role has ended; otherwise at once, beside the others. */
  readonly after?: string
  /** Which end of it will do. */
  readonly on: 'success' | 'failure' | 'any'
  /** People decide on whatever comes of it (S3.5). */
  readonly requiresHitl?: boolean
}

/** By the event's type, such as `issues.opened`. */
export type Routes = Readonly<Record<string, readonly RouteStep[]>>

/** What a step may ask for; `!` in front turns it round. */
export const CONDITION =
  /^!?(?:first_timer|touches_docs|has_words|draft|bot|label:[^\n]{1,100}|association:[A-Za-z_]{1,40}|command:[a-z-]{1,40})$/

/** What begins by the clock (periodic_trigger). */
export interface Trigger {
  readonly name: string
  readonly cron: string
  readonly timezone: string
  /** A role or an agent. */
  readonly to: string
  readonly task: string
  readonly repository: string
  /** It is about open threads that nobody touched for so long. */
  readonly staleDays?: number
  /** People decide on whatever comes of it (S3.5). */
  readonly requiresHitl?: boolean
}
