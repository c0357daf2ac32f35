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
    summary:
      'What was delegated, oldest first; an agent sees its own and those of the agents whose messages it may read',
    query: z.object({ state: z.enum(['open', 'all']).default('open'), limit: count(1000).default(200) }),
    answer: z.object({ tasks: z.array(TaskSchema) }),
  },
  task: {
    method: 'get',
    path: '/api/v1/tasks/{id}',
    who: 'token',
    summary: 'One task with its messages and the evidence that it is done',
    answer: TaskSchema.extend({
      context: z.record(z.string(), z.unknown()),
      checks: z.array(z.string()),
      judge: z.object({ kind: z.enum(['model', 'agent']), name: z.string() }).optional(),
      result_schema: z.record(z.string(), z.unknown()).optional().describe('What the result must fit'),
      attempts: z
        .array(z.object({ attempt: z.number(), at: z.string(), why: z.string() }))
        .describe('Those that failed, and why'),
      claim: z
        .object({ number: z.number(), step: z.enum(['checks', 'judge']), result: z.string() })
        .optional()
        .describe('A report of completed that is being validated'),
      evidence: z.array(EvidenceSchema),
      spending: z
        .array(SpentSchema.extend({ agent: z.string() }))
        .describe('The same as spent, by who spent it'),
      spent_below: SpentSchema.optional().describe('On all that was delegated for it'),
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
      'What happens in a task and below it, from its beginning to its end; Last-Event-ID resumes without a gap',
    query: z.object({ after: sequence.optional() }),
    answer: TaskStreamEventSchema,
    type: 'text/event-stream',
  },
  trace: {
    method: 'get',
    path: '/api/v1/tasks/{id}/trace',
    who: 'token',
    summary: 'The exact flow of a task and all below it: messages, questions to people, verdicts, attempts',
    query: z.object({ limit: count(100_000).default(10_000) }),
    answer: z.object({
      task: TaskSchema,
      tasks: z.array(TaskSchema),
      steps: z.array(TaskStreamEventSchema),
      more: z.boolean().describe('There are more steps than the limit'),
    }),
  },
  ask: {
    method: 'post',
    path: '/api/v1/asks',
    who: 'operator',
    summary:
      'Ask the team: who is needed is chosen, and the root agent gets a task. The same Idempotency-Key asks once',
    body: z.object({
      question: z.string(),
      agent: z
        .string()
        .optional()
        .describe('Who answers; else the only agent without a parent, else one is chosen'),
    }),
    limit: 1024 * 1024,
    answer: z.object({
      task_id: z.string(),
      root: z.string(),
      chosen: names.describe('Who may be needed besides; nobody is a valid choice'),
      why: z.string(),
      by: z.enum(['model', 'keywords']),
      unknown: names.describe('What the model named that is not there'),
    }),
  },
} as const satisfies Routes
