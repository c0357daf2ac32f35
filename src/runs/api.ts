import { z } from 'zod'
import { count, type Routes, sequence } from '../base/route.ts'
import { defineCommand, routeOf } from '../protocol/command.ts'
import { MESSAGE_TYPES } from './plan.ts'
import { NODE_STATES, RUN_OUTCOMES } from './run.ts'

const RUN_STATES = ['running', ...RUN_OUTCOMES] as const

const ProblemSchema = z.object({
  line: z.number().describe('From 1; 0: there is no file'),
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
    .describe('In the currency of the prices in orc.yaml; absent: the price is unknown'),
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
    .describe('True: all agents have ended, and the outputs and the report are being written'),
  folder: z.string().describe('The paths in the plan are relative to this folder'),
  place: z.string().describe('The folder with the workspaces, the outputs and the reports of the run'),
  round: z.number().describe('From 1; resuming the run starts the next round'),
  by: z.string().describe('The person or agent who started the run'),
  created_at: z.string(),
  begun_at: z.string().optional().describe('Start of this round'),
  ended_at: z.string().optional(),
  elapsed_ms: z.number().describe('Duration of this round'),
  agents: z.number(),
  counts: z.partialRecord(z.enum(NODE_STATES), z.number()).describe('Number of agents in each state'),
  concurrency: z.number(),
  cancelled: z.string().optional().describe('Who cancelled the run, and why'),
  trouble: z
    .string()
    .optional()
    .describe(
      'Why the run is blocked by something other than an agent, such as a full disk. The other fields then show the stored state',
    ),
  report_fault: z.string().optional().describe('Why a run that has ended has no report'),
})

const RunNodeSchema = z.object({
  name: z.string(),
  state: z.enum(NODE_STATES),
  reason: z.string().optional().describe('Explains the state'),
  depends_on: z.array(z.string()),
  waits_for: z.array(z.string()).describe('What the agent waits for; empty once it has ended'),
  step: z.string().optional().describe('Current step, from status.json'),
  progress: z.object({ done: z.number(), total: z.number().describe('0: unknown') }).optional(),
  attempt: z.number().describe('Number of the last attempt, counted over all rounds; 0: none yet'),
  tries: z.number().describe('Attempts since its last fresh start'),
  max_tries: z.number(),
  cached: z
    .boolean()
    .describe('True: completed without running, because an earlier round completed it from the same inputs'),
  started_at: z.string().optional().describe('Start of the first attempt of this round'),
  ended_at: z.string().optional(),
  elapsed_ms: z.number().optional().describe('From the first attempt of this round to the end'),
  workspace: z.string(),
  request_id: z.string().optional().describe('The request that asks a person about it'),
  task_id: z.string().optional().describe('The task of the team member that does the work'),
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
    .describe('Attempts of this round'),
})

const RunFileSchema = z.object({
  text: z.string(),
  bytes: z.number().describe('Size of the whole file'),
  cut: z.boolean().describe('True: the text is only a part of the file'),
})

const about = {
  seq: z.number().describe('Sequence number in the audit log, for Last-Event-ID'),
  at: z.string(),
  run_id: z.string(),
  text: z.string().describe('The event in words'),
}

/** An event of a run. */
const RunEventSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('begun'), ...about, round: z.number(), agents: z.number() }),
  z.object({
    type: z.literal('node').describe('The state or the attempt of an agent changed'),
    ...about,
    node: z.string(),
    state: z.enum(NODE_STATES),
    attempt: z.number(),
    cached: z.boolean().optional(),
    reason: z.string().optional(),
  }),
  z.object({
    type: z.literal('progress').describe('Progress from status.json, at most twice a second for each agent'),
    ...about,
    node: z.string(),
    attempt: z.number(),
    step: z.string(),
    done: z.number(),
    total: z.number(),
  }),
  z.object({
    type: z.literal('asked').describe('A request to a person'),
    ...about,
    node: z.string(),
    request_id: z.string(),
    awaits: z.boolean().describe('False: a notice that needs no answer'),
  }),
  z.object({ type: z.literal('note'), ...about, node: z.string().optional() }),
  z.object({
    type: z.literal('end').describe('The run has ended. The last event'),
    ...about,
    outcome: z.enum(RUN_OUTCOMES),
    round: z.number(),
  }),
])

export type RunUpdate = z.output<typeof RunEventSchema>

/** A plan's own limit is lower; its JSON may be longer. */
const PLAN_BYTES = 9 * 1024 * 1024

const runId = z.string().describe('The run, such as run_7')
const planFile = z.string().max(4096).optional().describe('The name of the plan file, for error messages')
const concurrency = z.int().min(1).max(10_000).optional()

const missingInputs = z.array(z.string()).optional().describe("Input files of the plan that don't exist yet")

export const startRun = defineCommand({
  type: 'start_run',
  audience: 'people',
  summary: 'Run a plan, unless it has mistakes. Requests with the same Idempotency-Key start one run',
  fields: z.object({
    plan: z.string().describe('The text of plan.yaml'),
    folder: z
      .string()
      .describe("The absolute path that the plan's paths are relative to; workspaces go to runs/ID in it"),
    file: planFile,
    name: z.string().max(200).optional().describe('The name of the run, unless the plan has one'),
    concurrency: concurrency.describe("Number of agents that run in parallel. Default: the plan's"),
  }),
  example: 'orc run plan.yaml',
  details: z.object({ run_id: z.string(), missing_inputs: missingInputs }),
})

export const resumeRun = defineCommand({
  type: 'resume_run',
  audience: 'people',
  summary:
    'Resume a run that has ended. Agents that completed with the same inputs do not run again. A run that has not ended continues unchanged; changes to it are refused',
  fields: z.object({
    id: runId,
    plan: z.string().optional().describe('The new text of the plan. Default: the plan of the last round'),
    folder: z
      .string()
      .optional()
      .describe("The path that the plan's paths are relative to now; the workspaces stay where they are"),
    file: planFile,
    concurrency,
    fresh: z.boolean().optional().describe('True: also run agents again that completed with the same inputs'),
    round: z
      .int()
      .min(1)
      .optional()
      .describe('The round to continue or start: the open round, or the one after the last round that ended'),
  }),
  example: 'orc run --resume run_7',
  details: z.object({
    run_id: z.string(),
    round: z.number(),
    resumed: z.boolean().describe('False: the run has not ended, or the requested round had already begun'),
    missing_inputs: missingInputs,
  }),
})

export const cancelRun = defineCommand({
  type: 'cancel_run',
  audience: 'people',
  summary: 'Cancel a run and stop its active agents',
  fields: z.object({ id: runId, reason: z.string().trim().min(1).max(500).optional() }),
  example: 'orc run cancel run_7',
  details: z.object({
    run_id: z.string(),
    cancelled: z.boolean().describe('False: the run had ended or been cancelled before'),
  }),
})

const messageKind = z.enum(MESSAGE_TYPES).default('update').describe('The type of the message')

export const sendToRun = defineCommand({
  type: 'send_to_run',
  audience: 'people',
  summary:
    'Send a message to an agent of a run, stored as a file in messages/. The plan must set messages: true',
  fields: z.object({
    id: runId,
    to: z.string().min(1).max(64).describe('An agent of the run'),
    kind: messageKind,
    content: z.unknown().refine((content) => content !== undefined, 'there is no content'),
  }),
  example: 'orc run send run_7 writer "Use British spelling"',
  details: z.object({ run_id: z.string(), file: z.string().describe('Its name in messages/') }),
})

const attemptQuery = z.object({
  attempt: z.coerce.number<number | string>().int().min(1).optional().describe('Default: the last attempt'),
})

export const RUN_ROUTES = {
  startRun: {
    method: 'post',
    path: '/api/v1/runs',
    who: 'operator',
    ...routeOf(startRun),
    limit: PLAN_BYTES,
  },
  runs: {
    method: 'get',
    path: '/api/v1/runs',
    who: 'operator',
    summary: 'List the runs, oldest first',
    query: z.object({ state: z.enum(['open', 'all']).default('all'), limit: count(1000).default(50) }),
    answer: z.object({ runs: z.array(RunSchema) }),
  },
  run: {
    method: 'get',
    path: '/api/v1/runs/{id}',
    who: 'operator',
    summary: 'Show one run with all its agents',
    answer: RunSchema.extend({
      report: z.string().optional().describe('Path of the report of the last round'),
      nodes: z.array(RunNodeSchema).describe('In the order of the plan'),
    }),
  },
  resumeRun: {
    method: 'post',
    path: '/api/v1/runs/{id}/resume',
    who: 'operator',
    ...routeOf(resumeRun),
    body: resumeRun.fields.omit({ id: true }),
    limit: PLAN_BYTES,
  },
  cancelRun: {
    method: 'post',
    path: '/api/v1/runs/{id}/cancel',
    who: 'operator',
    ...routeOf(cancelRun),
    body: cancelRun.fields.omit({ id: true }),
  },
  sendToRun: {
    method: 'post',
    path: '/api/v1/runs/{id}/messages',
    who: 'operator',
    ...routeOf(sendToRun),
    // The type of the message is `type` here, as in its file. The command calls it `kind`, because `type` names the command.
    body: sendToRun.fields
      .omit({ id: true, kind: true })
      .extend({ type: messageKind })
      .transform(({ type, ...message }) => ({ ...message, kind: type })),
    // The message itself has a lower limit; its JSON may be several times as long.
    limit: 1024 * 1024,
  },
  runEvents: {
    method: 'get',
    path: '/api/v1/runs/{id}/events',
    who: 'operator',
    summary: 'Stream the events of a run until it ends; Last-Event-ID resumes without a gap',
    query: z.object({
      after: sequence.optional(),
      round: z
        .enum(['last', 'all'])
        .default('last')
        .describe('Where the stream begins unless "after" is given'),
    }),
    answer: RunEventSchema,
    type: 'text/event-stream',
  },
  runLog: {
    method: 'get',
    path: '/api/v1/runs/{id}/agents/{agent}/log',
    who: 'operator',
    summary: 'Show the end of what an attempt of an agent printed',
    query: attemptQuery,
    answer: RunFileSchema,
  },
  runLogEvents: {
    method: 'get',
    path: '/api/v1/runs/{id}/agents/{agent}/log/events',
    who: 'operator',
    summary: 'Stream the size of the log of an attempt as it grows; read the text with the log route',
    query: attemptQuery,
    answer: z.object({ bytes: z.number() }),
    type: 'text/event-stream',
  },
  runOutput: {
    method: 'get',
    path: '/api/v1/runs/{id}/agents/{agent}/output',
    who: 'operator',
    summary: 'Show the beginning of an output file of an agent as text',
    query: z.object({ path: z.string().max(1000) }),
    answer: RunFileSchema,
  },
  runReport: {
    method: 'get',
    path: '/api/v1/runs/{id}/report',
    who: 'operator',
    summary: 'Show the report of a run, finished or so far, as Markdown or as one HTML page',
    query: z.object({ format: z.enum(['markdown', 'html']).default('markdown') }),
    answer: z.string(),
    type: 'text/markdown',
    also: { 'text/html': 'With format=html: one page without network access or scripts' },
  },
  proposePlan: {
    method: 'post',
    path: '/api/v1/plans',
    who: 'operator',
    summary: 'Let a model propose a plan for a goal. Starts nothing',
    body: z.object({
      goal: z.string().trim().min(1).max(20_000),
      model: z
        .string()
        .optional()
        .describe('A name from "models" in orc.yaml. Default: "runs.planner" there'),
    }),
    answer: z.object({
      plan: z.string().describe('The text of plan.yaml, for review'),
      problems: z.array(ProblemSchema).describe('Mistakes that keep the plan from running'),
      model: z.string(),
    }),
  },
} as const satisfies Routes
