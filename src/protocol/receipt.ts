import type { AppError, ErrorCode } from '../base/errors.ts'

/**
 * What a speaker is told about one command, in the seeds' words. `delivered` means "stored in the recipient's
 * mailbox" and nothing more; `delivery` tells how far the message has truly come (C27).
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
  /** A broadcast has one line a recipient; `message_id` is then the first one's. */
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
