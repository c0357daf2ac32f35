import { z } from 'zod'
import { type AppError, ERROR_CODES, type ErrorCode } from '../base/errors.ts'
import { names } from '../base/route.ts'

const ErrorCodeSchema = z.enum(Object.keys(ERROR_CODES) as [ErrorCode, ...ErrorCode[]])

export const ErrorAnswer = z.object({
  status: z.literal('error'),
  code: ErrorCodeSchema,
  message: z.string(),
  hint: z.string().optional(),
  retry_after_ms: z.number().optional(),
})

const Recipient = z.object({
  to: z.string(),
  status: z.enum(['delivered', 'blocked', 'held']),
  message_id: z.string().optional(),
  request_id: z.string().optional(),
  reason: z.string().optional(),
})

export const ReceiptSchema = z.discriminatedUnion('status', [
  z.object({
    status: z
      .literal('delivered')
      .describe("Stored in the recipient's mailbox; delivery says how far it has got"),
    message_id: z.string(),
    delivery: z.literal('queued'),
    to: z.string(),
    recipients: z
      .array(Recipient)
      .optional()
      .describe("For a broadcast, one per recipient; message_id is then the first one's"),
    ignored: names.optional(),
  }),
  z.object({
    status: z.literal('ok'),
    result: z.string(),
    details: z.record(z.string(), z.unknown()).optional(),
    ignored: names.optional(),
  }),
  z.object({ status: z.literal('blocked'), reason: z.string(), ignored: names.optional() }),
  z.object({
    status: z.literal('held'),
    request_id: z.string(),
    reason: z.string(),
    ignored: names.optional(),
  }),
  ErrorAnswer.extend({ ignored: names.optional() }),
])

/**
 * The response to one command. `delivered` means only "stored in the recipient's mailbox"; `delivery` says how far the
 * message has got (C27).
 */
export type Receipt = z.output<typeof ReceiptSchema>
export type RecipientReceipt = z.output<typeof Recipient>
export type ErrorReceipt = Extract<Receipt, { status: 'error' }>

export function errorReceipt(error: AppError): ErrorReceipt {
  const receipt: ErrorReceipt = { status: 'error', code: error.code, message: error.message }
  if (error.hint !== undefined) receipt.hint = error.hint
  const retryAfter = error.data?.retryAfterMs
  if (typeof retryAfter === 'number') receipt.retry_after_ms = retryAfter
  return receipt
}
