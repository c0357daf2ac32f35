import { z } from 'zod'
import { count, type Routes, sequence } from '../base/route.ts'
import { MESSAGE_TYPES } from './plan.ts'
import { NODE_STATES, RUN_OUTCOMES } from './run.ts'

const RUN_STATES = ['running', ...RUN_OUTCOMES] as const

const ProblemSchema = z.object({
  line: z.number().describe('From 1; 0 where there is no file'),
  column: z.number(),
  path: z.string(),
  message: z.string(),
  hint: z.string(),
})

const SpentSchema = z.object({
  input_tokens: z.number(),
  output_tokens: z.number(),
  cost: z
    .number()
    .optional()
    .describe('In the currency of the prices in orc.yaml; absent: no price is known'),
})

/** A run at a glance. */
const RunSchema = z.object({
  id: z.string(),
  name: z.string(),
  goal: z.string().optional(),
  state: z.enum(RUN_STATES),
  gathering: z
    .boolean()
    .optional()
    .describe('True: all its agents have ended; its outputs are gathered and its report is written'),
  folder: z.string().describe('What the paths of the plan are relative to'),
  place: z.string().describe('The folder with the workspaces, the outputs and the reports of the run'),
  round: z.number().describe('From 1; it grows when the run is resumed'),
  by: z.string().describe('Who started it'),
  created_at: z.string(),
  begun_at: z.string().optional().describe('Of this round'),
  ended_at: z.string().optional(),
  elapsed_ms: z.number().describe('Of this round'),
  agents: z.number(),
  counts: z.partialRecord(z.enum(NODE_STATES), z.number()).describe('How many agents are in which state'),
  concurrency: z.number(),
  cancelled: z.string().optional().describe('By whom, and why'),
  trouble: z
    .string()
    .optional()
    .describe(
      "What keeps it from going on that is no agent's doing: a full disk. What is told of it is as it was stored",
    ),
  report_fault: z.string().optional().describe('Why it has no report, although it has ended'),
})

const RunNodeSchema = z.object({
  name: z.string(),
  state: z.enum(NODE_STATES),
  reason: z.string().optional().describe('Why it is as it is'),
  depends_on: z.array(z.string()),
  waits_for: z.array(z.string()).describe('For what, and on whom; nothing for one that has ended'),
  step: z.string().optional().describe('What status.json says it does'),
  progress: z.object({ done: z.number(), total: z.number().describe('0 where it is not known') }).optional(),
  attempt: z.number().describe('The last one, from 1, in all rounds; 0: none yet'),
  tries: z.number().describe('Attempts since its last fresh start'),
  max_tries: z.number(),
  cached: z
    .boolean()
    .describe('Completed without being run: an earlier round had done it from the same inputs'),
  started_at: z.string().optional().describe('Of the first attempt of this round'),
  ended_at: z.string().optional(),
  elapsed_ms: z.number().optional().describe('From the first attempt of this round to the end'),
  workspace: z.string(),
  request_id: z.string().optional().describe('What a person is asked about it'),
  task_id: z.string().optional().describe('The task of the member of the team that does it'),
  summary: z.string().optional(),
  outputs: z.array(z.object({ path: z.string(), bytes: z.number(), sha256: z.string() })),
  spent: SpentSchema.optional(),
  attempts: z
    .array(
      z.object({
        number: z.number(),
        outcome: z.enum(['running', 'claimed', 'completed', 'failed', 'lost', 'cancelled']),
        why: z.string(),
        started_at: z.string().optional(),
        ended_at: z.string().optional(),
      }),
    )
    .describe('Of this round'),
})

const RunFileSchema = z.object({
  text: z.string(),
  bytes: z.number().describe('Of the whole file'),
  cut: z.boolean().describe('This is not all of it'),
})

const about = {
  seq: z.number().describe("The audit's number of it: Last-Event-ID"),
  at: z.string(),
  run_id: z.string(),
  text: z.string().describe('The same in words'),
}

/** An event of a run. */
const RunEventSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('begun'), ...about, round: z.number(), agents: z.number() }),
  z.object({
    type: z.literal('node').describe('An agent came to another state, or to another attempt'),
    ...about,
    node: z.string(),
    state: z.enum(NODE_STATES),
    attempt: z.number(),
    cached: z.boolean().optional(),
    reason: z.string().optional(),
  }),
  z.object({
    type: z.literal('progress').describe('What status.json says; at most twice a second for each agent'),
    ...about,
    node: z.string(),
    attempt: z.number(),
    step: z.string(),
    done: z.number(),
    total: z.number(),
  }),
  z.object({
    type: z.literal('asked').describe('A person is asked'),
    ...about,
    node: z.string(),
    request_id: z.string(),
    awaits: z.boolean().describe('False: it is only told to people, nothing waits for a verdict'),
  }),
  z.object({ type: z.literal('note'), ...about, node: z.string().optional() }),
  z.object({
    type: z.literal('end').describe('The run has ended; nothing comes after it'),
    ...about,
    outcome: z.enum(RUN_OUTCOMES),
    round: z.number(),
  }),
])

export type RunUpdate = z.output<typeof RunEventSchema>

export const RUN_ROUTES = {
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
      file: z
        .string()
        .max(4096)
        .optional()
        .describe('What its file is called, for what is said of mistakes in it'),
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
      'Take up a run that has ended; who completed from the same inputs is not run again. One that goes on is left alone, and what would change it is refused',
    body: z.object({
      plan: z.string().optional().describe('As it is now; else as it was'),
      folder: z.string().optional().describe('What its paths are relative to now; the workspaces stay'),
      file: z
        .string()
        .max(4096)
        .optional()
        .describe('What its file is called, for what is said of mistakes in it'),
      concurrency: z.int().min(1).max(10_000).optional(),
      fresh: z.boolean().optional().describe('Whoever completed is run again all the same'),
      round: z
        .int()
        .min(1)
        .optional()
        .describe(
          'The round that is meant: the one that was seen open, or the one after that which was seen ended. No later one is begun, whatever happened meanwhile',
        ),
    }),
    limit: 9 * 1024 * 1024,
    answer: z.object({
      run_id: z.string(),
      round: z.number(),
      resumed: z
        .boolean()
        .describe(
          'False: it had not ended and goes on by itself, or the round that was meant was there already',
        ),
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
    // The message itself has a lower limit; its JSON may be several times as long.
    limit: 1024 * 1024,
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
      after: sequence.optional(),
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
  runLogEvents: {
    method: 'get',
    path: '/api/v1/runs/{id}/agents/{agent}/log/events',
    who: 'operator',
    summary: 'How much an attempt has printed, as it prints; read it with the log',
    query: z.object({
      attempt: z.coerce
        .number<number | string>()
        .int()
        .min(1)
        .optional()
        .describe('The last one, unless said'),
    }),
    answer: z.object({ bytes: z.number() }),
    type: 'text/event-stream',
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
} as const satisfies Routes
