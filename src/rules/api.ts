import { z } from 'zod'
import { count, names, type Routes, sequence } from '../base/route.ts'
import { ACTIONS, type Action, VERDICTS } from './rule.ts'

const ActionSchema = z.enum(Object.keys(ACTIONS) as [Action, ...Action[]])

/** Prompts and rules. */
export const RULE_ROUTES = {
  prompt: {
    method: 'get',
    path: '/api/v1/prompts/{agent}',
    who: 'token',
    summary: 'The prompt that teaches an agent the protocol',
    answer: z.object({ agent: z.string(), prompt: z.string() }),
  },
  explain: {
    method: 'get',
    path: '/api/v1/rules/explain',
    who: 'token',
    summary: 'Explain which rule decides whether an agent may write to another or perform an action',
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
          .describe('With ask: who decides'),
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
    summary: 'Who may write to whom, one page of agents at a time; /rules/explain gives the reasons',
    query: z.object({
      offset: sequence.default(0),
      limit: count(60).default(40),
    }),
    answer: z.object({
      names,
      total: z.number().describe('Number of agents'),
      cells: z.array(z.array(z.enum(VERDICTS))).describe('One row per sender, one column per recipient'),
    }),
  },
} as const satisfies Routes
