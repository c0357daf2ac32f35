/** Kinds of requests to people (C9). */
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
