import { z } from 'zod'
import { count, names, type Routes } from '../base/route.ts'
import { defineCommand, routeOf } from '../protocol/command.ts'
import { ReceiptSchema } from '../protocol/receipt.ts'
import { HUMAN_DECISIONS, HUMAN_REQUEST_KINDS, HUMAN_REQUEST_STATES } from './human-request.ts'

export const HumanRequestSchema = z.object({
  id: z.string(),
  kind: z.enum(HUMAN_REQUEST_KINDS),
  state: z.enum(HUMAN_REQUEST_STATES),
  asker: z.string().describe('The agent that needs the verdict, or orchestrator'),
  question: z.string(),
  reason: z.string().describe('Why a person is asked'),
  task_id: z.string().optional().describe('The task that needs the decision'),
  choices: names.optional().describe('The possible answers; answer with a number (from 1) or the text'),
  default: z.string().optional().describe('The meaning of an empty answer; never applied automatically'),
  allow_other: z.boolean().optional().describe('Answers other than the choices are accepted'),
  action: z
    .object({ type: z.string(), fields: z.record(z.string(), z.unknown()), hash: z.string() })
    .optional()
    .describe('The exact held command in its current form'),
  modified: z
    .object({
      by: z.string(),
      changes: z.record(z.string(), z.object({ from: z.unknown().optional(), to: z.unknown().optional() })),
    })
    .optional()
    .describe('The changes a person made to the held command'),
  approvers: names.optional().describe('Whose approval counts; absent: everyone who may decide'),
  count: z.number().optional().describe('The number of events that a merged notice reports'),
  quorum: z.number().describe('The number of different people who must approve'),
  approvals: z
    .array(z.object({ by: z.string(), at: z.string(), comment: z.string().optional() }))
    .describe('Approvals so far of the command in its current form'),
  decisions: z
    .array(z.enum(HUMAN_DECISIONS))
    .describe('The decisions the caller may make; empty once decided'),
  created_at: z.string(),
  expires_at: z.string().optional().describe('Absent if it never expires'),
  decided_at: z.string().optional(),
  decided_by: z.string().optional(),
  comment: z.string().optional(),
})

export type HumanRequest = z.output<typeof HumanRequestSchema>

export const decideCommand = defineCommand({
  type: 'decide',
  audience: 'people',
  summary: 'Approve, reject, modify or answer a request; the asker is notified in every case',
  fields: z.object({
    id: z.string().describe('The request, such as req_7'),
    decision: z.enum(HUMAN_DECISIONS),
    comment: z
      .string()
      .optional()
      .describe('The answer, or a remark to the asker of at most 10,000 characters'),
    fields: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('With modify: the fields of the held command to change; null removes a field'),
    hash: z
      .string()
      .regex(/^[0-9a-fA-F]{8,64}$/)
      .optional()
      .describe(
        'The hash of the command you reviewed, at least its first 8 characters; a different command is not approved',
      ),
    insist: z.boolean().optional().describe('Accept the answer even if a model finds it unsuitable'),
  }),
  example: 'orc approve req_7',
  details: z.object({ request: HumanRequestSchema, receipt: ReceiptSchema.optional() }),
})

export const PEOPLE_ROUTES = {
  humanRequests: {
    method: 'get',
    path: '/api/v1/human-requests',
    who: 'token',
    summary: 'List requests to people; an agent sees its own',
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
    ...routeOf(decideCommand),
    body: decideCommand.fields.omit({ id: true }),
    // An answer may be as long as a message, and its JSON several times as long.
    limit: 1024 * 1024,
  },
} as const satisfies Routes
