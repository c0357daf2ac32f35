import type { Receipt } from '../protocol/receipt.ts'
import type { HumanDecision, HumanRequest } from './human-request.ts'

/** A person's decision on a request. */
export interface Verdict {
  decision: HumanDecision
  /** The answer, or a comment. */
  comment?: string
  /** With `modify`: changed fields of the held command; null removes one. */
  fields?: Readonly<Record<string, unknown>>
  /** Hash of the action that the person saw, or its first characters: no other action is approved. */
  hash?: string
  /** The answer counts even if a model objects. */
  insist?: boolean
}

export interface Decided {
  request: HumanRequest
  /** The receipt of the held command, if it was carried out. */
  receipt?: Receipt
}
