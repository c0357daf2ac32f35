import { z } from 'zod'
import { count, type Routes, sequence, time } from '../base/route.ts'
import { AUDIT_CLASSES } from './entry.ts'

export const AuditEntrySchema = z.object({
  seq: z.number(),
  chain: z.string(),
  at: z.string(),
  type: z.string(),
  class: z.enum(AUDIT_CLASSES),
  actor: z.string(),
  subject: z.string().optional(),
  text: z.string(),
  confidence: z.number().optional(),
  data: z.record(z.string(), z.unknown()),
  hash: z.string(),
  line: z.string().describe('The entry as one readable line'),
})

const AuditQuerySchema = z.object({
  since: time.optional(),
  until: time.optional(),
  agent: z.string().optional().describe('Entries with this agent as actor or subject'),
  with: z.string().optional().describe('With agent: entries between the two'),
  type: z
    .string()
    .optional()
    .describe('A type such as message.accepted, or message for all that start with it'),
  class: z.enum(AUDIT_CLASSES).optional(),
  text: z.string().optional(),
  after: sequence.optional().describe('Only entries after this sequence number'),
  limit: count(100_000)
    .optional()
    .describe('Return only the newest entries, at most this many. Default: all'),
})

export const AUDIT_ROUTES = {
  audit: {
    method: 'get',
    path: '/api/v1/audit',
    who: 'token',
    summary: 'The audit, oldest first; agents see public entries and those they are a party to',
    query: AuditQuerySchema,
    answer: z.object({ entries: z.array(AuditEntrySchema) }),
    also: { 'application/x-ndjson': 'One entry per line, streamed' },
  },
  auditVerify: {
    method: 'get',
    path: '/api/v1/audit/verify',
    who: 'operator',
    summary: 'Verify the whole chain, and every message against it',
    answer: z.object({
      ok: z.boolean(),
      count: z.number(),
      seq: z.number().optional().describe('The first invalid entry'),
      problem: z.string().optional(),
      message: z.string(),
    }),
  },
} as const satisfies Routes

export const EVENT_ROUTES = {
  events: {
    method: 'get',
    path: '/api/v1/events',
    who: 'token',
    summary: 'New audit entries as events; ids are sequence numbers, and Last-Event-ID resumes without gaps',
    query: z.object({ after: sequence.optional() }),
    answer: AuditEntrySchema,
    type: 'text/event-stream',
  },
} as const satisfies Routes
