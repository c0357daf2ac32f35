import { z } from 'zod'
import { count, names, type Routes } from '../base/route.ts'
import { ReceiptSchema } from '../protocol/receipt-schema.ts'
import { HUMAN_DECISIONS, HUMAN_REQUEST_KINDS, HUMAN_REQUEST_STATES } from './human-request.ts'

export const HumanRequestSchema = z.object({
  id: z.string(),
  kind: z.enum(HUMAN_REQUEST_KINDS),
  state: z.enum(HUMAN_REQUEST_STATES),
  asker: z.string(),
  question: z.string(),
  reason: z.string(),
  task_id: z.string().optional().describe('The task that asks'),
  choices: names.optional().describe('What can be answered, by number (from 1) or text'),
  default: z.string().optional().describe('What an empty answer means; it never counts by itself'),
  allow_other: z.boolean().optional().describe('Other answers than the choices will do as well'),
  action: z
    .object({ type: z.string(), fields: z.record(z.string(), z.unknown()), hash: z.string() })
    .optional()
    .describe('The exact command that is held, as it stands now'),
  modified: z
    .object({
      by: z.string(),
      changes: z.record(z.string(), z.object({ from: z.unknown().optional(), to: z.unknown().optional() })),
    })
    .optional()
    .describe('A person changed the command since it was asked about'),
  approvers: names.optional().describe('Whose approval counts; without it, that of everyone who may decide'),
  count: z.number().optional().describe('Of a notice that tells of several things at once: how many'),
  quorum: z.number().describe('How many different people must approve'),
  approvals: z
    .array(z.object({ by: z.string(), at: z.string(), comment: z.string().optional() }))
    .describe('Those given so far to this very command'),
  decisions: z
    .array(z.enum(HUMAN_DECISIONS))
    .describe('What the caller may say to it; nothing once it is decided'),
  created_at: z.string(),
  expires_at: z.string(),
  decided_at: z.string().optional(),
  decided_by: z.string().optional(),
  comment: z.string().optional(),
})

export const PEOPLE_ROUTES = {
  humanRequests: {
    method: 'get',
    path: '/api/v1/human-requests',
    who: 'token',
    summary: 'What people are asked; an agent sees its own',
    query: z.object({ state: z.enum(['open', 'all']).default('open'), limit: count(1000).default(200) }),
    answer: z.object({ requests: z.array(HumanRequestSchema) }),
  },
  humanRequest: {
    method: 'get',
    path: '/api/v1/human-requests/{id}',
    who: 'token',
    summary: 'One request to people; an agent sees its own',
    answer: HumanRequestSchema,
  },
  decide: {
    method: 'post',
    path: '/api/v1/human-requests/{id}/verdict',
    who: 'person',
    summary: 'Approve, reject, change or answer; the asker is told either way',
    // An answer is as long as a message may be, and its JSON several times that.
    limit: 1024 * 1024,
    body: z.object({
      decision: z.enum(HUMAN_DECISIONS),
      comment: z
        .string()
        .optional()
        .describe('The answer, or a remark of at most 10,000 characters that the asker is told'),
      fields: z
        .record(z.string(), z.unknown())
        .optional()
        .describe(
          'With modify: the fields of the held command that are to be otherwise; null takes one away',
        ),
      hash: z
        .string()
        .regex(/^[0-9a-fA-F]{8,64}$/)
        .optional()
        .describe('Of the command that was looked at, at least its first 8 characters: no other is approved'),
      insist: z.boolean().optional().describe('The answer counts, whatever a model thinks of it'),
    }),
    answer: z.object({ request: HumanRequestSchema, receipt: ReceiptSchema.optional() }),
  },
} as const satisfies Routes
