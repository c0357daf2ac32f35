import { z } from 'zod'
import { ERROR_CODES, type ErrorCode } from '../base/errors.ts'
import { names } from '../base/route.ts'

const ErrorCodeSchema = z.enum(Object.keys(ERROR_CODES) as [ErrorCode, ...ErrorCode[]])

export const ErrorAnswer = z.object({
  status: z.literal('error'),
  code: ErrorCodeSchema,
  message: z.string(),
  hint: z.string().optional(),
  retry_after_ms: z.number().optional(),
})

export const ReceiptSchema = z.discriminatedUnion('status', [
  z.object({
    status: z
      .literal('delivered')
      .describe("Stored in the recipient's mailbox; how far it came is its delivery"),
    message_id: z.string(),
    delivery: z.literal('queued'),
    to: z.string(),
    recipients: z
      .array(
        z.object({
          to: z.string(),
          status: z.enum(['delivered', 'blocked', 'held']),
          message_id: z.string().optional(),
          request_id: z.string().optional(),
          reason: z.string().optional(),
        }),
      )
      .optional(),
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
