import { z } from 'zod'
import { AUDIT_CLASSES } from '../model/audit-entry.ts'
import { ERROR_CODES, type ErrorCode } from '../model/errors.ts'
import { HUMAN_DECISIONS, HUMAN_REQUEST_KINDS, HUMAN_REQUEST_STATES } from '../model/human-request.ts'
import { DELIVERY_STATES, PRIORITIES, TASK_MESSAGE_KINDS } from '../model/message.ts'
import { ROLES } from '../model/person.ts'
import { MESSAGE_TYPES } from '../model/plan.ts'
import { ACTIONS, type Action, VERDICTS } from '../model/rule.ts'
import {
  EVIDENCE_OUTCOMES,
  QUESTION_KINDS,
  TASK_STATES,
  TASK_TIMERS,
  VALIDATION_STEPS,
} from '../model/task.ts'
import { GithubLogSchema } from './github-log-shape.ts'
import { EventTrailSchema, GithubStateSchema, SetupSchema } from './github-shape.ts'
import { ProblemSchema, RunEventSchema, RunFileSchema, RunNodeSchema, RunSchema } from './run-shape.ts'
import { TaskEventSchema } from './task-event.ts'

/**
 * The HTTP API as one table: the server's routes, the OpenAPI document and the typed client are all read off it.
 * `who`: `anyone` needs no token, `token` any valid one, `person` that of a person, `operator` that of one who may
 * change things; whoever may only look may use its GETs.
 */
export interface Route {
  method: 'get' | 'post' | 'delete'
  path: string
  who: 'anyone' | 'token' | 'person' | 'operator'
  summary: string
  query?: z.ZodObject
  body?: z.ZodType
  /** How many bytes the body may have; 64 KiB unless it is said. `own`: the handler reads it, in forms of its own. */
  limit?: number | 'own'
  answer: z.ZodType
  /** The media type of the answer; JSON unless it is said. In a stream of events, the schema is that of each one's data. */
  type?: 'text/event-stream' | 'text/plain' | 'text/markdown'
  /** Other forms of the answer, by media type. */
  also?: Readonly<Record<string, string>>
}

const count = (most: number) => z.coerce.number<number | string>().int().min(1).max(most)
const time = z.string().describe('A time (ISO 8601) or a span back from now, such as 10m, 2h, 1d')
const names = z.array(z.string())

export const ErrorCodeSchema = z.enum(Object.keys(ERROR_CODES) as [ErrorCode, ...ErrorCode[]])

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

export const MailSchema = z.object({
  id: z.string(),
  from: z.string(),
  to: z.string(),
  title: z.string(),
  content: z.string(),
  priority: z.enum(PRIORITIES),
  at: z.string(),
  delivery: z.enum(DELIVERY_STATES).describe('How far the message has truly come'),
  attempts: z.number(),
  correlation_id: z.string(),
  in_reply_to: z.string().optional(),
  task_id: z.string().optional().describe('The task it is about'),
  kind: z.enum(TASK_MESSAGE_KINDS).optional().describe('What it is to that task'),
})

export const DeliveryCountSchema = z.object({
  agent: z.string(),
  state: z.enum(DELIVERY_STATES),
  count: z.number(),
})

export const AgentSchema = z.object({
  name: z.string(),
  parent: z.string().optional(),
  role: z.string().optional(),
  status: z.string().describe('What it says of itself, else the state of its session'),
  session: z.string(),
  waits_for: z.string().optional().describe('What keeps messages from it though it is idle'),
  current_task: z.string().optional(),
  paused: z.boolean(),
  runtime: z.string().describe('What runs it; none for a program that only holds its token'),
  program: z.string().optional(),
  context: z
    .object({
      model: z.string().optional(),
      tokens: z.number().optional(),
      window: z.number().optional(),
      percent: z.number().optional(),
      level: z.enum(['ok', 'warning', 'critical', 'unknown']),
      lines: z.number().optional(),
      bytes: z.number().optional(),
    })
    .optional()
    .describe("How full its context is, by its program's own record"),
  spent: z.number().optional().describe('In the currency of the prices in orc.yaml'),
  updated_at: z.string(),
})

export const SpentSchema = z.object({
  answers: z.number().describe('How often a model answered'),
  input: z.number().describe('In tokens, like the next three'),
  output: z.number(),
  cache_read: z.number(),
  cache_write: z.number(),
  cost: z.number().describe('In the currency of the prices in orc.yaml'),
  unpriced: z.number().describe('Answers of models without a price, not in the cost'),
})

export const EvidenceSchema = z.object({
  claim: z.number().describe('Which report of completed it is about, from 1'),
  step: z.enum(VALIDATION_STEPS),
  outcome: z
    .enum(EVIDENCE_OUTCOMES)
    .describe(
      'skipped: there was nothing to do; unavailable: it could not be done, so that nothing has passed',
    ),
  text: z.string(),
  at: z.string(),
  by: z.string().optional().describe('Who judged'),
  commit: z.string().optional().describe('What the checks looked at'),
  dirty: z.boolean().optional().describe('Not all of it was committed'),
  checks: z
    .array(
      z.object({
        name: z.string(),
        passed: z.boolean(),
        exit_code: z.number().optional().describe('Absent when it did not end by itself'),
        why: z.string(),
        output: z.string().describe('The beginning and the end of it'),
        ms: z.number(),
      }),
    )
    .optional(),
})

export const TaskSchema = z.object({
  id: z.string(),
  parent: z.string().optional().describe("The delegator's own task that it serves"),
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
    .describe('The clock that runs'),
  waits_for: z.array(z.string()).describe('For what, and on whom; nothing for one that has ended'),
  result: z.string().optional(),
  reason: z.string().optional().describe('Why it ended'),
  spent: SpentSchema.optional().describe(
    'On models for this task, by agents and by the service, as far as is known',
  ),
})

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

export const HaltSchema = z
  .object({ by: z.string(), at: z.string(), reason: z.string().optional() })
  .describe('Everything is stopped: by whom, since when and why. POST /api/v1/go ends it')

export const WebhookStateSchema = z.object({
  name: z.string(),
  url: z.string().describe('Without its path, which may be a secret'),
  format: z.enum(['json', 'slack']),
  events: z.array(z.string()),
  state: z
    .enum(['active', 'failing', 'dead'])
    .describe('dead: it took nothing for a day, or is gone; nothing is sent until a test succeeds'),
  pending: z.number().describe('Events that wait to be sent'),
  sent: z.number(),
  dropped: z.number(),
  sent_at: z.string().optional(),
  failing_since: z.string().optional(),
  next_attempt_at: z.string().optional(),
  last_error: z.string().optional(),
})

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

export const CommandBody = z
  .object({ type: z.string().describe('Such as send_message; GET /api/v1/commands lists them') })
  .loose()

const JsonRpcMessage = z.object({ jsonrpc: z.literal('2.0') }).loose()

const ActionSchema = z.enum(Object.keys(ACTIONS) as [Action, ...Action[]])

/** How many commands one array may hold. */
export const MAX_COMMANDS = 1000

const filter = z.enum(['unread', 'all', 'urgent'])

export const AuditQuerySchema = z.object({
  since: time.optional(),
  until: time.optional(),
  agent: z.string().optional().describe('Entries in which this agent acts or is concerned'),
  with: z.string().optional().describe('Together with agent: entries between the two'),
  type: z.string().optional().describe('Such as message.accepted, or message for all that begin so'),
  class: z.enum(AUDIT_CLASSES).optional(),
  text: z.string().optional(),
  after: z.coerce
    .number<number | string>()
    .int()
    .min(0)
    .optional()
    .describe('Only entries after this sequence number'),
  limit: count(100_000).optional().describe('The newest so many; without it all'),
})

export const ROUTES = {
  health: {
    method: 'get',
    path: '/healthz',
    who: 'anyone',
    summary: 'Whether the service is up',
    answer: z.object({
      status: z.literal('ok'),
      halted: z.literal(true).optional().describe('A person has stopped everything'),
    }),
  },
  mintLogin: {
    method: 'post',
    path: '/api/v1/logins',
    who: 'person',
    summary: 'A link that signs a browser in to the control room as the caller, once and within 5 minutes',
    body: z.object({}),
    answer: z.object({
      path: z.string().describe('What follows the address of the service'),
      expires_at: z.string(),
    }),
  },
  openSession: {
    method: 'post',
    path: '/api/v1/sessions',
    who: 'anyone',
    summary:
      'Sign a browser in with the code of such a link. Half of its token comes as a cookie, the other half is sent as X-Orc-Session',
    body: z.object({ code: z.string().max(100) }),
    answer: z.object({
      name: z.string(),
      role: z.enum(ROLES),
      half: z.string(),
      expires_at: z.string(),
    }),
  },
  closeSession: {
    method: 'delete',
    path: '/api/v1/session',
    who: 'person',
    summary: 'Sign this browser out',
    answer: z.object({ status: z.literal('signed_out') }),
  },
  me: {
    method: 'get',
    path: '/api/v1/me',
    who: 'token',
    summary: 'Who the caller is, and what they may do',
    answer: z.object({
      name: z.string(),
      kind: z.enum(['agent', 'person', 'operator']),
      role: z.enum(ROLES).optional(),
      expires_at: z.string().optional().describe('Of a session in a browser'),
    }),
  },
  command: {
    method: 'post',
    path: '/api/v1/commands',
    who: 'token',
    summary: 'Carry out one command, an array of commands, or the commands found in text/plain',
    body: z.union([CommandBody, z.array(CommandBody).max(MAX_COMMANDS)]),
    limit: 'own',
    answer: z.union([ReceiptSchema, z.array(ReceiptSchema)]),
  },
  commandTypes: {
    method: 'get',
    path: '/api/v1/commands',
    who: 'token',
    summary: 'The command types with their parameters',
    answer: z.object({
      commands: z.array(
        z.object({
          type: z.string(),
          summary: z.string(),
          example: z.string(),
          body: z.string().optional().describe('The parameter that the body fills'),
          schema: z.record(z.string(), z.unknown()).describe('JSON Schema of the parameters'),
        }),
      ),
    }),
  },
  agents: {
    method: 'get',
    path: '/api/v1/agents',
    who: 'token',
    summary: 'The agents and their status',
    answer: z.object({ agents: z.array(AgentSchema) }),
  },
  terminal: {
    method: 'get',
    path: '/api/v1/agents/{agent}/terminal',
    who: 'operator',
    summary: 'The end of what an agent shows in its terminal, and the command that opens it',
    query: z.object({ lines: count(10_000).default(200) }),
    answer: z.object({
      agent: z.string(),
      session: z.string(),
      screen: z.string(),
      view: z.array(z.string()).optional().describe('A command line for a terminal of your own'),
    }),
  },
  terminalEvents: {
    method: 'get',
    path: '/api/v1/agents/{agent}/terminal/events',
    who: 'operator',
    summary: 'What an agent shows in its terminal, as it changes; the first event has every row',
    answer: z.object({
      session: z.string(),
      taken_by: z.string().optional().describe('Who types into it; deliveries wait for them'),
      taken_here: z.boolean().optional().describe('Whether it was taken over with the session that asks'),
      can_take_over: z.boolean(),
      columns: z.number().describe('0 for an agent without a terminal, whose words are shown as plain rows'),
      height: z.number(),
      cursor: z.object({ x: z.number(), y: z.number() }).optional(),
      rows: z
        .array(z.tuple([z.number(), z.string()]))
        .describe('Those that changed, with their colours (SGR)'),
    }),
    type: 'text/event-stream',
  },
  takeTerminal: {
    method: 'post',
    path: '/api/v1/agents/{agent}/terminal/take-over',
    who: 'operator',
    summary: 'Take over a terminal to type into it; deliveries to the agent wait',
    body: z.object({}),
    answer: z.object({ status: z.literal('taken'), by: z.string() }),
  },
  releaseTerminal: {
    method: 'delete',
    path: '/api/v1/agents/{agent}/terminal/take-over',
    who: 'operator',
    summary: 'Let go of a terminal; deliveries go on',
    answer: z.object({ status: z.literal('free') }),
  },
  typeKeys: {
    method: 'post',
    path: '/api/v1/agents/{agent}/terminal/keys',
    who: 'operator',
    summary: 'Type into a terminal that the caller has taken over',
    body: z.object({
      keys: z.string().min(1).max(50_000).describe('As a terminal sends them'),
      paste: z.boolean().optional().describe('As one piece of text, in which nothing is a key'),
    }),
    answer: z.object({ status: z.literal('typed') }),
  },
  interrupt: {
    method: 'post',
    path: '/api/v1/agents/{agent}/interrupt',
    who: 'operator',
    summary: "End an agent's turn by its program's own means; what it was given stays given",
    body: z.object({}),
    answer: z.object({ stopped: z.boolean().describe('It truly ended'), evidence: z.string() }),
  },
  transcript: {
    method: 'get',
    path: '/api/v1/agents/{agent}/transcript',
    who: 'operator',
    summary: 'The last that an agent said by itself, since the service found or started it; oldest first',
    answer: z.object({
      agent: z.string(),
      said: z.array(z.object({ at: z.string(), text: z.string() })),
    }),
  },
  figures: {
    method: 'get',
    path: '/api/v1/figures',
    who: 'operator',
    summary:
      'What happened over time in 60 steps: entries of the audit by type, cost, and how long messages took to be read',
    query: z.object({ span: z.enum(['15m', '1h', '6h', '24h', '7d']).default('1h') }),
    answer: z.object({
      from: z.string(),
      step_ms: z.number(),
      counts: z.record(z.string(), z.array(z.number())),
      cost: z.array(z.number()).describe('In the currency of the prices in orc.yaml'),
      read_ms: z
        .object({ p50: z.array(z.number().nullable()), p95: z.array(z.number().nullable()) })
        .describe('From its acceptance to the moment it was read, of the newest 5,000 messages'),
    }),
  },
  stop: {
    method: 'post',
    path: '/api/v1/stop',
    who: 'operator',
    summary: 'Stop the service; its agents end with it, or go on in their terminals until it is back',
    body: z.object({ agents: z.enum(['end', 'leave']).default('end') }),
    answer: z.object({ status: z.literal('stopping'), pid: z.number() }),
  },
  halt: {
    method: 'post',
    path: '/api/v1/halt',
    who: 'operator',
    summary:
      'Stop everything at once: busy agents are interrupted, nothing is delivered, started or timed until POST /api/v1/go',
    body: z.object({ reason: z.string().trim().min(1).max(500).optional() }),
    answer: z.object({
      status: z.literal('halted'),
      already: z.boolean().describe('It was so before; who was still busy was interrupted once more'),
      halt: HaltSchema,
      interrupts: z
        .array(z.object({ agent: z.string(), stopped: z.boolean(), evidence: z.string() }))
        .describe('Whether the turn of each busy agent truly ended'),
    }),
  },
  go: {
    method: 'post',
    path: '/api/v1/go',
    who: 'operator',
    summary: 'Let everything go on after POST /api/v1/halt; clocks have the time left that they had',
    body: z.object({}),
    answer: z.object({
      status: z.literal('going'),
      halt: HaltSchema.optional().describe('What ended; absent when nothing was stopped'),
      lasted_seconds: z.number().optional(),
      told: z.array(z.string()).describe('Agents that were interrupted or refused, and are told to go on'),
    }),
  },
  webhooks: {
    method: 'get',
    path: '/api/v1/webhooks',
    who: 'operator',
    summary: 'The webhooks of orc.yaml: what waits, what was sent, what went wrong',
    answer: z.object({ webhooks: z.array(WebhookStateSchema) }),
  },
  testWebhook: {
    method: 'post',
    path: '/api/v1/webhooks/{name}/test',
    who: 'operator',
    summary: 'Post one event webhook.test now; with its success a dead webhook is used again',
    body: z.object({}),
    answer: z.object({
      sent: z.boolean(),
      status: z.number().optional(),
      error: z.string().optional(),
      webhook: WebhookStateSchema,
    }),
  },
  messages: {
    method: 'get',
    path: '/api/v1/messages',
    who: 'token',
    summary: 'The newest messages that the caller may see, oldest first',
    query: z.object({
      agent: z.string().optional().describe('Only messages that it sent or received'),
      with: z.string().optional().describe('Only messages that this one sent or received as well'),
      thread: z.string().optional().describe('Only messages of one exchange, by its `correlation_id`'),
      before: z.string().optional().describe('Only messages older than this id: the page before'),
      since: time.optional(),
      limit: count(1000).default(200),
    }),
    answer: z.object({ messages: z.array(MailSchema) }),
  },
  message: {
    method: 'get',
    path: '/api/v1/messages/{id}',
    who: 'token',
    summary: 'One message, and every step of its delivery with the evidence',
    answer: MailSchema.extend({
      steps: z.array(z.object({ at: z.string(), state: z.string(), evidence: z.string() })),
      waits_for: z.string().optional().describe('What it waits for right now, if it is not given yet'),
    }),
  },
  mailbox: {
    method: 'get',
    path: '/api/v1/mailbox',
    who: 'token',
    summary: "An agent's mailbox in order; nothing is marked read",
    query: z.object({
      agent: z.string().optional().describe('The caller itself, unless it was granted more'),
      filter: filter.default('unread'),
      after: z.string().optional().describe('Only messages after this id'),
      limit: count(1_000_000).optional(),
    }),
    answer: z.object({ messages: z.array(MailSchema) }),
  },
  deliveries: {
    method: 'get',
    path: '/api/v1/deliveries',
    who: 'token',
    summary: 'Open deliveries by agent and state',
    query: z.object({ agent: z.string().optional() }),
    answer: z.object({ deliveries: z.array(DeliveryCountSchema) }),
  },
  nextDeliveries: {
    method: 'get',
    path: '/api/v1/deliveries/next',
    who: 'token',
    summary: 'Wait for messages and take them; acknowledge them by id, or they come again',
    query: z.object({
      agent: z.string().optional().describe('The caller itself; the operator names the agent'),
      wait: z.coerce
        .number<number | string>()
        .min(0)
        .max(60)
        .default(25)
        .describe('Seconds to wait when there is nothing'),
    }),
    answer: z.object({ messages: z.array(MailSchema) }),
    also: { 'text/event-stream': 'The same as a stream: one event `message` for each' },
  },
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
    query: z.object({ after: z.coerce.number<number | string>().int().min(0).optional() }),
    answer: TaskEventSchema,
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
      steps: z.array(TaskEventSchema),
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
  startRun: {
    method: 'post',
    path: '/api/v1/runs',
    who: 'operator',
    summary:
      'Carry out a plan; nothing starts while there is a mistake in it. The same Idempotency-Key starts once',
    body: z.object({
      plan: z.string().describe('The text of plan.yaml'),
      folder: z
        .string()
        .describe('Absolute: what the paths of the plan are relative to; the workspaces go to runs/ID in it'),
      name: z.string().max(200).optional().describe('What it is called, unless the plan says so'),
      concurrency: z.int().min(1).max(10_000).optional().describe('Instead of the one of the plan'),
    }),
    limit: 9 * 1024 * 1024,
    answer: z.object({ run_id: z.string() }),
  },
  runs: {
    method: 'get',
    path: '/api/v1/runs',
    who: 'operator',
    summary: 'The runs, oldest first',
    query: z.object({ state: z.enum(['open', 'all']).default('all'), limit: count(1000).default(50) }),
    answer: z.object({ runs: z.array(RunSchema) }),
  },
  run: {
    method: 'get',
    path: '/api/v1/runs/{id}',
    who: 'operator',
    summary: 'One run with each of its agents',
    answer: RunSchema.extend({
      report: z.string().optional().describe('Where the report of the last round lies'),
      nodes: z.array(RunNodeSchema).describe('In the order of the plan'),
    }),
  },
  resumeRun: {
    method: 'post',
    path: '/api/v1/runs/{id}/resume',
    who: 'operator',
    summary:
      'Take up a run that has ended; who completed from the same inputs is not run again. One that goes on is left alone',
    body: z.object({
      plan: z.string().optional().describe('As it is now; else as it was'),
      folder: z.string().optional().describe('What its paths are relative to now; the workspaces stay'),
      concurrency: z.int().min(1).max(10_000).optional(),
      fresh: z.boolean().optional().describe('Whoever completed is run again all the same'),
    }),
    limit: 9 * 1024 * 1024,
    answer: z.object({
      run_id: z.string(),
      round: z.number(),
      resumed: z.boolean().describe('False: it had not ended, and goes on by itself'),
    }),
  },
  cancelRun: {
    method: 'post',
    path: '/api/v1/runs/{id}/cancel',
    who: 'operator',
    summary: 'Cancel a run: what of it lives is stopped',
    body: z.object({ reason: z.string().trim().min(1).max(500).optional() }),
    answer: z.object({
      run_id: z.string(),
      cancelled: z.boolean().describe('False: it had ended or was cancelled before'),
    }),
  },
  sendToRun: {
    method: 'post',
    path: '/api/v1/runs/{id}/messages',
    who: 'operator',
    summary: 'Say something to an agent of a run whose plan has messages: it becomes a file in messages/',
    body: z.object({
      to: z.string().min(1).max(64),
      type: z.enum(MESSAGE_TYPES).default('update'),
      content: z.unknown().refine((content) => content !== undefined, 'there is no content'),
    }),
    answer: z.object({ run_id: z.string(), file: z.string().describe('Its name in messages/') }),
  },
  runEvents: {
    method: 'get',
    path: '/api/v1/runs/{id}/events',
    who: 'operator',
    summary: 'What happens in a run, from its beginning to its end; Last-Event-ID resumes without a gap',
    query: z.object({
      after: z.coerce.number<number | string>().int().min(0).optional(),
      round: z.enum(['last', 'all']).default('last').describe('Where to begin, without after'),
    }),
    answer: RunEventSchema,
    type: 'text/event-stream',
  },
  runLog: {
    method: 'get',
    path: '/api/v1/runs/{id}/agents/{agent}/log',
    who: 'operator',
    summary: 'What an attempt of an agent of a run printed, the end of it',
    query: z.object({
      attempt: z.coerce
        .number<number | string>()
        .int()
        .min(1)
        .optional()
        .describe('The last one, unless said'),
    }),
    answer: RunFileSchema,
  },
  runOutput: {
    method: 'get',
    path: '/api/v1/runs/{id}/agents/{agent}/output',
    who: 'operator',
    summary: 'One of the outputs of an agent of a run as text, the beginning of it',
    query: z.object({ path: z.string().max(1000) }),
    answer: RunFileSchema,
  },
  runReport: {
    method: 'get',
    path: '/api/v1/runs/{id}/report',
    who: 'operator',
    summary: 'What a run came to, so far or in the end: Markdown, or one HTML page',
    query: z.object({ format: z.enum(['markdown', 'html']).default('markdown') }),
    answer: z.string(),
    type: 'text/markdown',
    also: { 'text/html': 'With format=html: one page that needs no network and no scripts' },
  },
  proposePlan: {
    method: 'post',
    path: '/api/v1/plans',
    who: 'operator',
    summary: 'A model proposes a plan for a goal; nothing is started',
    body: z.object({
      goal: z.string().trim().min(1).max(20_000),
      model: z.string().optional().describe('A name from "models" of orc.yaml; else "runs.planner" of it'),
    }),
    answer: z.object({
      plan: z.string().describe('The text of plan.yaml, to be looked through and changed'),
      problems: z.array(ProblemSchema).describe('What would keep it from being run'),
      model: z.string(),
    }),
  },
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
  audit: {
    method: 'get',
    path: '/api/v1/audit',
    who: 'token',
    summary: 'The audit, oldest first; an agent sees public entries and those it is a party to',
    query: AuditQuerySchema,
    answer: z.object({ entries: z.array(AuditEntrySchema) }),
    also: { 'application/x-ndjson': 'One entry a line, streamed' },
  },
  auditVerify: {
    method: 'get',
    path: '/api/v1/audit/verify',
    who: 'operator',
    summary: 'Check the whole chain, and every message against it',
    answer: z.object({
      ok: z.boolean(),
      count: z.number(),
      seq: z.number().optional().describe('The first bad entry'),
      problem: z.string().optional(),
      message: z.string(),
    }),
  },
  state: {
    method: 'get',
    path: '/api/v1/state',
    who: 'token',
    summary: 'The service itself: version, store, configuration, queues',
    answer: z.object({
      version: z.string(),
      pid: z.number(),
      started_at: z.string(),
      store: z.object({ engine: z.string(), place: z.string(), pending: z.number() }),
      config: z.object({
        file: z.string().optional(),
        loaded_at: z.string(),
        problem: z.string().optional(),
      }),
      halt: HaltSchema.optional(),
      github: GithubStateSchema.optional().describe('Where orc.yaml has "github"'),
      agents: z.array(AgentSchema),
      deliveries: z.array(DeliveryCountSchema),
      open_requests: z.number(),
    }),
  },
  events: {
    method: 'get',
    path: '/api/v1/events',
    who: 'token',
    summary: 'The audit as it grows; ids are its sequence numbers, Last-Event-ID resumes without a gap',
    query: z.object({ after: z.coerce.number<number | string>().int().min(0).optional() }),
    answer: AuditEntrySchema,
    type: 'text/event-stream',
  },
  prompt: {
    method: 'get',
    path: '/api/v1/prompts/{agent}',
    who: 'token',
    summary: 'The text that teaches that agent the protocol',
    answer: z.object({ agent: z.string(), prompt: z.string() }),
  },
  explain: {
    method: 'get',
    path: '/api/v1/rules/explain',
    who: 'token',
    summary: 'Which rule decides whether one may write to another, or do something, and why',
    query: z.object({ from: z.string(), to: z.string(), action: ActionSchema.optional() }),
    answer: z.object({
      decision: z.object({
        verdict: z.enum(VERDICTS),
        rule: z.string(),
        line: z.number().optional(),
        reason: z.string(),
        approval: z
          .object({ approvers: names.optional(), quorum: z.number() })
          .optional()
          .describe('With ask: whose word it takes'),
      }),
      steps: z.array(
        z.object({
          rule: z.string(),
          line: z.number().optional(),
          verdict: z.enum(VERDICTS).optional(),
          reason: z.string(),
        }),
      ),
    }),
  },
  rulesMatrix: {
    method: 'get',
    path: '/api/v1/rules/matrix',
    who: 'operator',
    summary: 'Who may write to whom, for so many agents at once; /rules/explain tells why',
    query: z.object({
      offset: z.coerce.number<number | string>().int().min(0).default(0),
      limit: count(60).default(40),
    }),
    answer: z.object({
      names,
      total: z.number().describe('How many agents there are'),
      cells: z
        .array(z.array(z.enum(VERDICTS)))
        .describe('A row for each sender, a column for each recipient'),
    }),
  },
  tokens: {
    method: 'get',
    path: '/api/v1/tokens',
    who: 'operator',
    summary: 'The valid tokens by id; never the tokens themselves',
    answer: z.object({
      tokens: z.array(
        z.object({
          id: z.string(),
          agent: z.string().describe('Whose it is: the name of an agent or a person, or operator'),
          kind: z.enum(['agent', 'person', 'operator']),
          created_at: z.string(),
          expires_at: z.string().optional().describe('Of a session in a browser'),
        }),
      ),
    }),
  },
  mintToken: {
    method: 'post',
    path: '/api/v1/tokens',
    who: 'operator',
    summary:
      "Make a token for an agent; it is shown this once. Those of people only the operator's own token makes",
    body: z.object({ agent: z.string().describe('An agent, a person of orc.yaml, or operator') }),
    answer: z.object({ id: z.string(), agent: z.string(), token: z.string() }),
  },
  revokeTokens: {
    method: 'delete',
    path: '/api/v1/tokens/{which}',
    who: 'operator',
    summary: 'Revoke a token by its id, or all tokens of an agent or person, at once',
    answer: z.object({ revoked: z.number() }),
  },
  echo: {
    method: 'post',
    path: '/api/v1/echo',
    who: 'token',
    summary: 'Give a JSON body back, to measure the way there and back',
    body: z.unknown(),
    answer: z.unknown(),
  },
  mcp: {
    method: 'post',
    path: '/mcp',
    who: 'token',
    summary: 'The Model Context Protocol (streamable HTTP, without sessions): every command is a tool',
    body: z.union([JsonRpcMessage, z.array(JsonRpcMessage)]),
    limit: 'own',
    answer: z.union([JsonRpcMessage, z.array(JsonRpcMessage)]),
  },
  moderation: {
    method: 'get',
    path: '/api/v1/moderation',
    who: 'person',
    summary:
      'Flags about conduct, for people with the role moderator; to everyone else there is no such thing',
    query: z.object({ state: z.enum(['open', 'all']).default('open'), limit: count(1000).default(200) }),
    answer: z.object({
      flags: z.array(
        z.object({
          id: z.string(),
          repository: z.string(),
          number: z.number().optional(),
          at: z.string(),
          flag: z.record(z.string(), z.unknown()).describe('The coc_violation_flag of the protocol'),
          closed_at: z.string().optional(),
          closed_by: z.string().optional(),
          decision: z.enum(['upheld', 'dismissed']).optional(),
          comment: z.string().optional(),
        }),
      ),
    }),
  },
  closeModeration: {
    method: 'post',
    path: '/api/v1/moderation/{id}',
    who: 'person',
    summary: 'A moderator has decided on a flag; nobody else hears of it',
    body: z.object({
      decision: z.enum(['upheld', 'dismissed']),
      comment: z.string().max(2000).optional(),
    }),
    answer: z.object({ closed: z.boolean() }),
  },
  github: {
    method: 'get',
    path: '/api/v1/github',
    who: 'operator',
    summary: 'What came from GitHub, what agents proposed to do there, and what became of it; newest first',
    query: z.object({ limit: count(500).default(100) }),
    answer: GithubLogSchema,
  },
  githubWebhook: {
    method: 'post',
    path: '/github/webhooks',
    who: 'anyone',
    summary:
      'A webhook of GitHub, proven by its signature; stored, answered with 202, and worked on afterwards',
    body: z
      .unknown()
      .describe("GitHub's own payload, with X-Hub-Signature-256, X-GitHub-Event and X-GitHub-Delivery"),
    limit: 'own',
    answer: z.object({
      status: z.enum(['accepted', 'known']).describe('known: it came before, and is not worked on again'),
      delivery: z.string(),
    }),
  },
  nextTeamMessages: {
    method: 'get',
    path: '/api/v1/github/messages',
    who: 'token',
    summary:
      "What a member of the GitHub team has to do, in the team's own JSON: each task_delegation until it is answered",
    query: z.object({
      wait: z.coerce
        .number<number | string>()
        .min(0)
        .max(60)
        .default(25)
        .describe('Seconds to wait when there is nothing'),
    }),
    answer: z.array(z.record(z.string(), z.unknown())),
  },
  sayTeamMessage: {
    method: 'post',
    path: '/api/v1/github/messages',
    who: 'token',
    summary:
      "A message of a member in the team's own JSON: task_completion, hitl_approval_request, coc_violation_flag, agent_health_check",
    body: z.unknown().describe('At most 102,400 bytes'),
    limit: 'own',
    answer: z.object({
      status: z.enum(['accepted', 'known']).describe('known: the task has ended, and it changes nothing'),
      message_id: z.string(),
    }),
  },
  githubSetup: {
    method: 'get',
    path: '/api/v1/github/setup',
    who: 'operator',
    summary: 'What the team needs of GitHub, and whether it has it: asks GitHub, and changes nothing',
    answer: SetupSchema,
  },
  replayEvent: {
    method: 'post',
    path: '/api/v1/github/events',
    who: 'operator',
    summary: 'Work on a payload of GitHub as if it had just come',
    body: z.object({
      event: z
        .string()
        .regex(/^[a-z_]{1,64}$/)
        .describe('As X-GitHub-Event has it: issues, pull_request …'),
      payload: z.record(z.string(), z.unknown()),
    }),
    limit: 8 * 1024 * 1024,
    answer: z.object({ delivery: z.string() }),
  },
  githubEvent: {
    method: 'get',
    path: '/api/v1/github/events/{delivery}',
    who: 'operator',
    summary: 'What an event of GitHub set in motion, as far as it has come',
    answer: EventTrailSchema,
  },
  hook: {
    method: 'post',
    path: '/hooks',
    who: 'token',
    summary:
      "A hook of an agent's own program; answered when there is an answer, however long a person takes",
    body: z.unknown().describe("The program's own words, such as Claude Code's or Codex's"),
    limit: 16 * 1024 * 1024,
    answer: z.unknown().describe('What the program is to do, in its own words; {} for nothing'),
  },
  metrics: {
    method: 'get',
    path: '/metrics',
    who: 'token',
    summary: 'Figures for Prometheus',
    answer: z.string().describe('The Prometheus text format'),
    type: 'text/plain',
  },
  openapi: {
    method: 'get',
    path: '/openapi.json',
    who: 'token',
    summary: 'This document',
    answer: z.record(z.string(), z.unknown()),
  },
} as const satisfies Record<string, Route>

export type RouteName = keyof typeof ROUTES
type Table = typeof ROUTES

/** What a caller gives as the query, and what the route's handler gets of it. */
export type QueryOf<Name extends RouteName> = Table[Name] extends { query: infer Q extends z.ZodType }
  ? z.input<Q>
  : Record<never, never>
export type ParsedQueryOf<Name extends RouteName> = Table[Name] extends { query: infer Q extends z.ZodType }
  ? z.output<Q>
  : Record<never, never>
export type BodyOf<Name extends RouteName> = Table[Name] extends { body: infer B extends z.ZodType }
  ? z.output<B>
  : undefined
export type AnswerOf<Name extends RouteName> = z.output<Table[Name]['answer']>

export type ReceiptAnswer = z.output<typeof ReceiptSchema>
export type MailAnswer = z.output<typeof MailSchema>
export type AuditEntryAnswer = z.output<typeof AuditEntrySchema>
export type { RunEvent } from './run-shape.ts'
export type { TaskEvent } from './task-event.ts'
