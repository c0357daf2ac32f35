import { z } from 'zod'
import { count, names, type Routes, sequence } from '../base/route.ts'
import { MailSchema } from '../messages/api.ts'
import { DELIVERY_STATES, TASK_MESSAGE_KINDS } from '../messages/message.ts'
import { HUMAN_REQUEST_KINDS, HUMAN_REQUEST_STATES } from '../people/human-request.ts'
import { defineCommand, routeOf } from '../protocol/command.ts'
import { EVIDENCE_OUTCOMES, QUESTION_KINDS, TASK_STATES, TASK_TIMERS, VALIDATION_STEPS } from './task.ts'

export const SpentSchema = z.object({
  answers: z.number().describe('Model responses'),
  input: z.number().describe('Tokens, like the next three'),
  output: z.number(),
  cache_read: z.number(),
  cache_write: z.number(),
  cost: z.number().describe('In the currency of the prices in orc.yaml'),
  unpriced: z.number().describe('Responses of models without a price, not in the cost'),
})

const EvidenceSchema = z.object({
  claim: z.number().describe('The report of completed that it is about, counted from 1'),
  step: z.enum(VALIDATION_STEPS),
  outcome: z
    .enum(EVIDENCE_OUTCOMES)
    .describe('skipped: not configured. unavailable: the step could not run, which does not count as passed'),
  text: z.string(),
  at: z.string(),
  by: z.string().optional().describe('The judge'),
  commit: z.string().optional().describe('The checked commit'),
  dirty: z.boolean().optional().describe('The folder had uncommitted changes'),
  checks: z
    .array(
      z.object({
        name: z.string(),
        passed: z.boolean(),
        exit_code: z.number().optional().describe('Absent if the check was stopped'),
        why: z.string(),
        output: z.string().describe('Beginning and end of the output'),
        ms: z.number(),
      }),
    )
    .optional(),
})

const TaskSchema = z.object({
  id: z.string(),
  parent: z.string().optional().describe("The delegator's own task"),
  root: z.string(),
  delegator: z.string(),
  agent: z.string(),
  task: z.string(),
  state: z.enum(TASK_STATES),
  attempt: z.number(),
  max_attempts: z.number(),
  created_at: z.string(),
  ended_at: z.string().optional(),
  due: z
    .object({ kind: z.enum(TASK_TIMERS), at: z.string() })
    .optional()
    .describe('The running timer'),
  waits_for: z.array(z.string()).describe('What the task waits for, and from whom; empty once it has ended'),
  result: z.string().optional(),
  reason: z.string().optional().describe('Why the task ended'),
  spent: SpentSchema.optional().describe(
    'Spending on models for this task, by agents and the service, as far as known',
  ),
})

const about = {
  seq: z.number().describe('Number of the audit entry, for Last-Event-ID'),
  at: z.string(),
  task_id: z.string(),
}
const excerpt = z.string().describe('Beginning of the text')

/** Events of a tree of tasks (S2.9, S2.18). */
const TaskStreamEventSchema = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('selected').describe('Agents were chosen'),
    ...about,
    agent: z.string().describe('The root agent, which answers'),
    chosen: z.array(z.string()),
    why: z.string(),
    by: z.enum(['model', 'keywords']),
    unknown: z.array(z.string()).describe('Agents that the model named but that do not exist'),
    root_why: z.string().optional(),
  }),
  z.object({
    type: z.literal('delegated'),
    ...about,
    parent: z.string().optional(),
    from: z.string(),
    to: z.string(),
    text: excerpt,
  }),
  z.object({
    type: z.literal('state'),
    ...about,
    agent: z.string(),
    state: z.enum(TASK_STATES),
    attempt: z.number(),
    text: z.string().describe('The state in words, with the reason'),
  }),
  z.object({
    type: z.literal('message'),
    ...about,
    message_id: z.string(),
    from: z.string(),
    to: z.string(),
    kind: z.enum(TASK_MESSAGE_KINDS),
    text: excerpt,
    delivery: z.enum(DELIVERY_STATES).optional().describe('In a trace: the current delivery state'),
    attempts: z.number().optional().describe('In a trace: number of delivery attempts'),
  }),
  z.object({
    type: z.literal('asked').describe('A request to a person'),
    ...about,
    request_id: z.string(),
    kind: z.enum(HUMAN_REQUEST_KINDS),
    from: z.string(),
    text: excerpt,
    awaits: z.boolean().describe('False for a notice, which needs no verdict'),
  }),
  z.object({
    type: z.literal('verdict'),
    ...about,
    request_id: z.string(),
    verdict: z.enum(HUMAN_REQUEST_STATES).describe('The decision; never `open`'),
    by: z.string(),
    to: z.string().optional().describe('The asker'),
    text: excerpt,
  }),
  z.object({
    type: z.literal('evidence').describe('Result of a check or the judge'),
    ...about,
    agent: z.string(),
    step: z.string(),
    outcome: z.string(),
    text: excerpt,
  }),
  z.object({
    type: z.literal('note'),
    ...about,
    text: z.string(),
    request_id: z.string().optional().describe('The request to people that the note is about'),
  }),
  z.object({
    type: z.literal('halt').describe('A halt began or ended'),
    ...about,
    over: z.boolean().describe('True: the halt ended'),
    by: z.string(),
    text: z.string(),
  }),
  z.object({
    type: z.literal('end').describe('The followed task has ended; the last event'),
    ...about,
    agent: z.string(),
    state: z.enum(TASK_STATES),
    result: z.string().optional().describe('The whole result'),
    reason: z.string().optional(),
  }),
])

export type TaskStreamEvent = z.output<typeof TaskStreamEventSchema>

export const askCommand = defineCommand({
  type: 'ask',
  audience: 'people',
  summary:
    'Ask the team: chooses the agents it needs and delegates to the root agent. The same Idempotency-Key asks only once',
  fields: z.object({
    question: z.string(),
    agent: z
      .string()
      .optional()
      .describe('The agent that answers. Default: the only agent without a parent, or a chosen one'),
  }),
  body: 'question',
  example: 'orc ask "How do I get from Tokyo to Osaka?"',
  details: z.object({
    task_id: z.string(),
    root: z.string(),
    chosen: names.describe('Other agents that may be needed'),
    why: z.string(),
    by: z.enum(['model', 'keywords']),
    unknown: names.describe('Agents that the model named but that do not exist'),
  }),
})

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
        .describe('The report of completed that is being validated'),
      evidence: z.array(EvidenceSchema),
      spending: z.array(SpentSchema.extend({ agent: z.string() })).describe('`spent` by agent'),
      spent_below: SpentSchema.optional().describe('Spending on all its subtasks'),
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
    summary: 'Events of a task and its subtasks until it ends; Last-Event-ID resumes without a gap',
    query: z.object({ after: sequence.optional() }),
    answer: TaskStreamEventSchema,
    type: 'text/event-stream',
  },
  trace: {
    method: 'get',
    path: '/api/v1/tasks/{id}/trace',
    who: 'token',
    summary:
      'Everything that happened to a task and its subtasks: messages, requests to people, verdicts, attempts',
    query: z.object({ limit: count(100_000).default(10_000) }),
    answer: z.object({
      task: TaskSchema,
      tasks: z.array(TaskSchema),
      steps: z.array(TaskStreamEventSchema),
      more: z.boolean().describe('The limit cut off further steps'),
    }),
  },
  ask: { method: 'post', path: '/api/v1/asks', who: 'operator', ...routeOf(askCommand), limit: 1024 * 1024 },
} as const satisfies Routes
