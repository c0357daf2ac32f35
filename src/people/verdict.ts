import type { Receipt } from '../protocol/receipt.ts'
import type { HumanDecision, HumanRequest } from './human-request.ts'

/** A person's word on a request. */
export interface Verdict {
  decision: HumanDecision
  /** The answer itself, or a remark. */
  comment?: string
  /** With `modify`: the fields of the held command that are to be otherwise; null takes one away. */
  fields?: Readonly<Record<string, unknown>>
  /** Of the action that the person looked at, or its first characters: another one is not approved. */
  hash?: string
  /** The answer counts, whatever a model thinks of it. */
  insist?: boolean
}

export interface Decided {
  request: HumanRequest
  /** What the held command came to, when it was carried out. */
  receipt?: Receipt
}
