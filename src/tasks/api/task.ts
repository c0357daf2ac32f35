import { z } from 'zod'
import { EVIDENCE_OUTCOMES, TASK_STATES, TASK_TIMERS, VALIDATION_STEPS } from '../task.ts'

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
