import { z } from 'zod'
import { EVIDENCE_OUTCOMES, TASK_STATES, TASK_TIMERS, VALIDATION_STEPS } from '../task.ts'

export const SpentSchema = z.object({
  answers: z.number().describe('Number of model responses'),
  input: z.number().describe('Tokens, like the next three'),
  output: z.number(),
  cache_read: z.number(),
  cache_write: z.number(),
  cost: z.number().describe('In the currency of the prices in orc.yaml'),
  unpriced: z.number().describe('Responses of models without a price, not in the cost'),
})

export const EvidenceSchema = z.object({
  claim: z.number().describe('Number of the report of completed, from 1'),
  step: z.enum(VALIDATION_STEPS),
  outcome: z
    .enum(EVIDENCE_OUTCOMES)
    .describe('skipped: not configured; unavailable: the step could not run, so it did not pass'),
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

export const TaskSchema = z.object({
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
  waits_for: z.array(z.string()).describe('What it waits for, and on whom; empty for an ended task'),
  result: z.string().optional(),
  reason: z.string().optional().describe('Why the task ended'),
  spent: SpentSchema.optional().describe(
    'Spending on models for this task, by agents and the service, as far as known',
  ),
})
