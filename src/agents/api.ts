import { z } from 'zod'
import type { Routes } from '../base/route.ts'

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

export const AGENT_ROUTES = {
  agents: {
    method: 'get',
    path: '/api/v1/agents',
    who: 'token',
    summary: 'The agents and their status',
    answer: z.object({ agents: z.array(AgentSchema) }),
  },
} as const satisfies Routes
