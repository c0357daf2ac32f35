/** One durable kind of question to a person serves every part of the system (C9). */
export const HUMAN_REQUEST_KINDS = ['input', 'approval', 'moderation', 'escalation'] as const
export type HumanRequestKind = (typeof HUMAN_REQUEST_KINDS)[number]

/**
 * `modified`: a person approved it after a person had changed it. `withdrawn`: whoever asked needs no answer any more,
 * such as a dialog that was answered in its terminal.
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

/** What the asker lets a person answer. */
export interface AnswerForm {
  readonly choices?: readonly string[]
  /** Taken for an empty answer that a person gives; never by itself. */
  readonly default?: string
  /** Other answers than the choices are welcome. */
  readonly allowOther?: boolean
}

export interface GivenApproval {
  by: string
  at: string
  comment?: string
}

/** Of the held action, as it was asked about and as it stands now; undefined for a field that is not there. */
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
  /** The task it was asked for, where the task itself asks. */
  taskId?: string
  /** The exact command that is held, and its hash: a verdict holds for this action and no other. */
  action?: { type: string; fields: Record<string, unknown>; hash: string }
  /** A person changed the action since it was asked about. */
  modified?: { by: string; changes: Record<string, FieldChange> }
  /** Whose approval counts; absent: everyone's who may decide. */
  approvers?: readonly string[]
  /** Of a notice that tells of several things: how many. */
  count?: number
  /** How many different people must approve. */
  quorum: number
  /** Those given so far to this very action. */
  approvals: readonly GivenApproval[]
  /** What can be said to it, while it is open. */
  decisions: readonly HumanDecision[]
  createdAt: string
  expiresAt: string
  decidedAt?: string
  decidedBy?: string
  comment?: string
}
