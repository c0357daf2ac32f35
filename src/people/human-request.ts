/** Every room asks people with the same durable request (C9). */
export const HUMAN_REQUEST_KINDS = ['input', 'approval', 'moderation', 'escalation'] as const
export type HumanRequestKind = (typeof HUMAN_REQUEST_KINDS)[number]

/**
 * `modified`: approved after a person changed it. `withdrawn`: the asker no longer needs an answer, for example because
 * a dialog was answered in its terminal.
 */
export const HUMAN_REQUEST_STATES = [
  'open',
  'approved',
  'modified',
  'rejected',
  'answered',
  'expired',
  'withdrawn',
] as const
export type HumanRequestState = (typeof HUMAN_REQUEST_STATES)[number]

export const HUMAN_DECISIONS = ['approve', 'reject', 'modify', 'answer'] as const
export type HumanDecision = (typeof HUMAN_DECISIONS)[number]

/** The answers that a person can choose from. */
export interface AnswerForm {
  readonly choices?: readonly string[]
  /** Replaces an empty answer. It never counts without a person's answer. */
  readonly default?: string
  /** The person may also answer in words of their own. */
  readonly allowOther?: boolean
}

export interface GivenApproval {
  by: string
  at: string
  comment?: string
}

/** A field of the held action before and after a person's change; undefined where the field is absent. */
export interface FieldChange {
  from?: unknown
  to?: unknown
}

export interface HumanRequest extends AnswerForm {
  id: string
  kind: HumanRequestKind
  state: HumanRequestState
  /** The agent that waits for the verdict, or `orchestrator`. */
  asker: string
  question: string
  /** Why a person is asked: the rule that says so, or what the loop breaker saw. */
  reason: string
  /** The task that asks, if one does. */
  taskId?: string
  /** The held command and its hash: a verdict applies to this command only. */
  action?: { type: string; fields: Record<string, unknown>; hash: string }
  /** A person changed the action since it was asked about. */
  modified?: { by: string; changes: Record<string, FieldChange> }
  /** People whose approval counts; without it, everyone who may decide. */
  approvers?: readonly string[]
  /** How many events a notice summarizes. */
  count?: number
  /** How many different people must approve. */
  quorum: number
  /** Approvals of the current action so far. */
  approvals: readonly GivenApproval[]
  /** Possible decisions while it is open. */
  decisions: readonly HumanDecision[]
  createdAt: string
  expiresAt: string
  decidedAt?: string
  decidedBy?: string
  comment?: string
}
