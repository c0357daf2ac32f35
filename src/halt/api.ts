import { z } from 'zod'
import type { Routes } from '../base/route.ts'

export const HaltSchema = z
  .object({ by: z.string(), at: z.string(), reason: z.string().optional() })
  .describe('Everything is stopped: by whom, since when and why. POST /api/v1/go ends it')

export const HALT_ROUTES = {
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
} as const satisfies Routes
