import { z } from 'zod'
import { count, names, type Routes, sequence } from '../base/route.ts'
import { MailSchema } from '../messages/api.ts'
import { TaskStreamEventSchema } from './api/event.ts'
import { EvidenceSchema, SpentSchema, TaskSchema } from './api/task.ts'
import { QUESTION_KINDS } from './task.ts'

export const TASK_ROUTES = {
  tasks: {
    method: 'get',
    path: '/api/v1/tasks',
    who: 'token',
    summary: 'List tasks, oldest first; an agent sees its own and those of agents whose messages it may read',
    query: z.object({ state: z.enum(['open', 'all']).default('open'), limit: count(1000).default(200) }),
    answer: z.object({ tasks: z.array(TaskSchema) }),
  },
  task: {
    method: 'get',
    path: '/api/v1/tasks/{id}',
    who: 'token',
    summary: 'One task with its messages and the evidence about its claims',
    answer: TaskSchema.extend({
      context: z.record(z.string(), z.unknown()),
      checks: z.array(z.string()),
      judge: z.object({ kind: z.enum(['model', 'agent']), name: z.string() }).optional(),
      result_schema: z.record(z.string(), z.unknown()).optional().describe('JSON schema of the result'),
      attempts: z
        .array(z.object({ attempt: z.number(), at: z.string(), why: z.string() }))
        .describe('Failed attempts'),
      claim: z
        .object({ number: z.number(), step: z.enum(['checks', 'judge']), result: z.string() })
        .optional()
        .describe('A report of completed that is being validated'),
      evidence: z.array(EvidenceSchema),
      spending: z.array(SpentSchema.extend({ agent: z.string() })).describe('The same as spent, by agent'),
      spent_below: SpentSchema.optional().describe('Spending on all tasks below it'),
      questions: z.array(
        z.object({ id: z.string(), kind: z.enum(QUESTION_KINDS), to: z.string(), text: z.string() }),
      ),
      children: z.array(TaskSchema),
      messages: z.array(MailSchema),
    }),
  },
  taskEvents: {
    method: 'get',
    path: '/api/v1/tasks/{id}/events',
    who: 'token',
    summary:
      'Events of a task and all below it, from its beginning to its end; Last-Event-ID resumes without a gap',
    query: z.object({ after: sequence.optional() }),
    answer: TaskStreamEventSchema,
    type: 'text/event-stream',
  },
  trace: {
    method: 'get',
    path: '/api/v1/tasks/{id}/trace',
    who: 'token',
    summary: 'All events of a task and all below it: messages, requests to people, verdicts, attempts',
    query: z.object({ limit: count(100_000).default(10_000) }),
    answer: z.object({
      task: TaskSchema,
      tasks: z.array(TaskSchema),
      steps: z.array(TaskStreamEventSchema),
      more: z.boolean().describe('The limit cut off further steps'),
    }),
  },
  ask: {
    method: 'post',
    path: '/api/v1/asks',
    who: 'operator',
    summary:
      'Ask the team: chooses the agents that are needed and delegates to the root agent. The same Idempotency-Key asks once',
    body: z.object({
      question: z.string(),
      agent: z
        .string()
        .optional()
        .describe('The agent that answers. Default: the only agent without a parent, or a chosen one'),
    }),
    limit: 1024 * 1024,
    answer: z.object({
      task_id: z.string(),
      root: z.string(),
      chosen: names.describe('Other agents that may be needed; may be empty'),
      why: z.string(),
      by: z.enum(['model', 'keywords']),
      unknown: names.describe('Names that the model invented'),
    }),
  },
} as const satisfies Routes
