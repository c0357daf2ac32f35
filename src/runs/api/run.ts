import { z } from 'zod'
import { NODE_STATES, RUN_OUTCOMES } from '../run.ts'

export const RUN_STATES = ['running', ...RUN_OUTCOMES] as const

export const ProblemSchema = z.object({
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
export const RunSchema = z.object({
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

export const RunNodeSchema = z.object({
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

export const RunFileSchema = z.object({
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

/** What happens in a run, one thing at a time. */
export const RunEventSchema = z.discriminatedUnion('type', [
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

export type RunEvent = z.output<typeof RunEventSchema>
