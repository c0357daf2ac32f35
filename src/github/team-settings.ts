/** Roles, routes, action policies and triggers of the GitHub team, as orc.yaml sets them. */

/** Actions that the service performs on GitHub for an agent. */
export const ACTION_KINDS = ['label', 'comment', 'review', 'branch', 'pull_request', 'close'] as const
export type ActionKind = (typeof ACTION_KINDS)[number]

/**
 * `autonomous`: performed at or above the confidence. `notice`: the same, with a notice in the inbox. `approval`:
 * people decide each time. `prohibited`: never performed.
 */
export const ACTION_MODES = ['autonomous', 'notice', 'approval', 'prohibited'] as const
type ActionMode = (typeof ACTION_MODES)[number]

export interface ActionPolicy {
  readonly mode: ActionMode
  /** Performed without approval from this confidence on, or from the threshold of the task if that is higher. */
  readonly confidence?: number
  /** The number of different people who must approve. */
  readonly quorum: number
}

/** The five built-in roles (S3.3); orc.yaml may add others. */
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

/** The work of one role for an event. */
export interface RouteStep {
  /** A role, such as triage, or an agent. */
  readonly to: string
  /** All conditions must hold. */
  readonly when: readonly string[]
  /** Starts after the step of that role has ended; without it, at once and in parallel. */
  readonly after?: string
  /** The outcome of `after` that starts this step. */
  readonly on: 'success' | 'failure' | 'any'
  /** People decide on all proposals (S3.5). */
  readonly requiresHitl?: boolean
}

/** Keyed by event type, such as `issues.opened`. */
export type EventRoutes = Readonly<Record<string, readonly RouteStep[]>>

/** A condition of a step; a leading `!` negates it. */
export const CONDITION =
  /^!?(?:first_timer|touches_docs|has_words|draft|bot|label:[^\n]{1,100}|association:[A-Za-z_]{1,40}|command:[a-z-]{1,40})$/

/** A scheduled task (periodic_trigger). */
export interface Trigger {
  readonly name: string
  readonly cron: string
  readonly timezone: string
  /** A role or an agent. */
  readonly to: string
  readonly task: string
  readonly repository: string
  /** Adds open threads without activity for this many days. */
  readonly staleDays?: number
  /** People decide on all proposals (S3.5). */
  readonly requiresHitl?: boolean
}
