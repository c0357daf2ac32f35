import { z } from 'zod'
import { count, names, type Routes, sequence } from '../base/route.ts'
import { ACTIONS, type Action, VERDICTS } from './rule.ts'

const ActionSchema = z.enum(Object.keys(ACTIONS) as [Action, ...Action[]])

/** What an agent is taught, and what it may do. */
export const RULE_ROUTES = {
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
      offset: sequence.default(0),
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
} as const satisfies Routes
