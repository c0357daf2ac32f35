import { z } from 'zod'
import { AgentSchema } from '../agents/api.ts'
import type { Routes } from '../base/route.ts'
import { GithubStateSchema } from '../github/api.ts'
import { HaltSchema } from '../halt/api.ts'
import { DeliveryCountSchema } from '../messages/api.ts'

export const HEALTH_ROUTES = {
  health: {
    method: 'get',
    path: '/healthz',
    who: 'anyone',
    summary: 'Whether the service is up',
    answer: z.object({
      status: z.literal('ok'),
      halted: z.literal(true).optional().describe('A person has stopped everything'),
      trouble: z.string().optional().describe('What keeps runs from going on: a full disk'),
    }),
  },
} as const satisfies Routes

export const FIGURE_ROUTES = {
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
} as const satisfies Routes

export const STATE_ROUTES = {
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
      troubles: z
        .array(z.object({ run_id: z.string(), text: z.string() }))
        .optional()
        .describe("What keeps runs from going on that is no agent's doing: a full disk"),
      github: GithubStateSchema.optional().describe('Where orc.yaml has "github"'),
      agents: z.array(AgentSchema),
      deliveries: z.array(DeliveryCountSchema),
      open_requests: z.number(),
    }),
  },
} as const satisfies Routes

export const DESCRIPTION_ROUTES = {
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
} as const satisfies Routes
