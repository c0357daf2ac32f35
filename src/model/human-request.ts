/** One durable kind of question to a person serves every part of the system (C9). */
export const HUMAN_REQUEST_KINDS = ['input', 'approval', 'moderation', 'escalation'] as const
export type HumanRequestKind = (typeof HUMAN_REQUEST_KINDS)[number]

/** `withdrawn`: whoever asked needs no answer any more, such as a dialog that was answered in its terminal. */
export const HUMAN_REQUEST_STATES = [
  'open',
  'approved',
  'rejected',
  'answered',
  'expired',
  'withdrawn',
] as const
export type HumanRequestState = (typeof HUMAN_REQUEST_STATES)[number]

export interface HumanRequest {
  id: string
  kind: HumanRequestKind
  state: HumanRequestState
  /** The agent that waits for the verdict, or `orchestrator`. */
  asker: string
  question: string
  /** Why a person is asked: the rule that says so, or what the loop breaker saw. */
  reason: string
  /** The exact command that is held, and its hash: a verdict holds for this action and no other. */
  action?: { type: string; fields: Record<string, unknown>; hash: string }
  createdAt: string
  expiresAt: string
  decidedAt?: string
  decidedBy?: string
  comment?: string
}
