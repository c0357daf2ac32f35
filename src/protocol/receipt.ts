import type { AppError, ErrorCode } from '../base/errors.ts'

/**
 * The response to one command. `delivered` means only "stored in the recipient's mailbox"; `delivery` says how far the
 * message has got (C27).
 */
export type Receipt =
  | DeliveredReceipt
  | { status: 'ok'; result: string; details?: Record<string, unknown>; ignored?: readonly string[] }
  | { status: 'blocked'; reason: string; ignored?: readonly string[] }
  | { status: 'held'; request_id: string; reason: string; ignored?: readonly string[] }
  | ErrorReceipt

interface DeliveredReceipt {
  status: 'delivered'
  message_id: string
  delivery: 'queued'
  to: string
  /** For a broadcast, one per recipient; `message_id` is then the first one's. */
  recipients?: readonly RecipientReceipt[]
  ignored?: readonly string[]
}

export interface RecipientReceipt {
  to: string
  status: 'delivered' | 'blocked' | 'held'
  message_id?: string
  request_id?: string
  reason?: string
}

export interface ErrorReceipt {
  status: 'error'
  code: ErrorCode
  message: string
  hint?: string
  retry_after_ms?: number
  ignored?: readonly string[]
}

export function errorReceipt(error: AppError): ErrorReceipt {
  const receipt: ErrorReceipt = { status: 'error', code: error.code, message: error.message }
  if (error.hint !== undefined) receipt.hint = error.hint
  const retryAfter = error.data?.retryAfterMs
  if (typeof retryAfter === 'number') receipt.retry_after_ms = retryAfter
  return receipt
}
