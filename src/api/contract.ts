import { z } from 'zod'
import { AGENT_ROUTES, AgentSchema, TERMINAL_ROUTES, TOKEN_ROUTES } from '../agents/api.ts'
import { AUDIT_ROUTES, type AuditEntrySchema, EVENT_ROUTES } from '../audit/api.ts'
import { ROLES } from '../base/person.ts'
import type { Routes } from '../base/route.ts'
import { COMMAND_ROUTES, HOOK_ROUTES, MCP_ROUTES } from '../commands/api.ts'
import { GITHUB_ROUTES, GithubStateSchema, MODERATION_ROUTES } from '../github/api.ts'
import { HALT_ROUTES, HaltSchema } from '../halt/api.ts'
import { DeliveryCountSchema, type MailSchema, MESSAGE_ROUTES } from '../messages/api.ts'
import { PEOPLE_ROUTES } from '../people/api.ts'
import type { ReceiptSchema } from '../protocol/receipt.ts'
import { RULE_ROUTES } from '../rules/api.ts'
import { RUN_ROUTES } from '../runs/api.ts'
import { TASK_ROUTES } from '../tasks/api.ts'
import { WEBHOOK_ROUTES } from '../webhooks/api.ts'

export const HEALTH_ROUTES = {
  health: {
    method: 'get',
    path: '/healthz',
    who: 'anyone',
    summary: 'Check that the service is up',
    answer: z.object({
      status: z.literal('ok'),
      halted: z.literal(true).optional().describe('A person has halted everything'),
      trouble: z.string().optional().describe('Why runs cannot continue, for example a full disk'),
    }),
  },
} as const satisfies Routes

export const FIGURE_ROUTES = {
  figures: {
    method: 'get',
    path: '/api/v1/figures',
    who: 'operator',
    summary:
      'Activity over time in 60 steps: audit entries by type, cost, and how long messages took to be read',
    query: z.object({ span: z.enum(['15m', '1h', '6h', '24h', '7d']).default('1h') }),
    answer: z.object({
      from: z.string(),
      step_ms: z.number(),
      counts: z.record(z.string(), z.array(z.number())),
      cost: z.array(z.number()).describe('In the currency of the prices in orc.yaml'),
      read_ms: z
        .object({ p50: z.array(z.number().nullable()), p95: z.array(z.number().nullable()) })
        .describe('From acceptance to reading, for the newest 5,000 messages'),
    }),
  },
  stop: {
    method: 'post',
    path: '/api/v1/stop',
    who: 'operator',
    summary: 'Stop the service and end its agents, or leave them running in their terminals until it is back',
    body: z.object({ agents: z.enum(['end', 'leave']).default('end') }),
    answer: z.object({ status: z.literal('stopping'), pid: z.number() }),
  },
} as const satisfies Routes

export const STATE_ROUTES = {
  state: {
    method: 'get',
    path: '/api/v1/state',
    who: 'token',
    summary: 'State of the service: version, store, configuration, agents, queues',
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
        .describe('Why runs cannot continue for reasons outside their agents, for example a full disk'),
      github: GithubStateSchema.optional().describe('Present if orc.yaml has "github"'),
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
    summary: 'Metrics for Prometheus',
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

/** Signing a browser in and out. */
export const SIGN_IN_ROUTES = {
  mintLogin: {
    method: 'post',
    path: '/api/v1/logins',
    who: 'person',
    summary:
      'Create a link that signs a browser in to the control room as the caller; valid once, for 5 minutes',
    body: z.object({}),
    answer: z.object({
      path: z.string().describe('The path to append to the address of the service'),
      expires_at: z.string(),
    }),
  },
  openSession: {
    method: 'post',
    path: '/api/v1/sessions',
    who: 'anyone',
    summary:
      'Sign a browser in with the code from a sign-in link. The cookie holds one half of the session token; send the other half as X-Orc-Session',
    body: z.object({ code: z.string().max(100) }),
    answer: z.object({
      name: z.string(),
      role: z.enum(ROLES),
      half: z.string(),
      expires_at: z.string(),
    }),
  },
  closeSession: {
    method: 'delete',
    path: '/api/v1/session',
    who: 'person',
    summary: 'Sign this browser out',
    answer: z.object({ status: z.literal('signed_out') }),
  },
  me: {
    method: 'get',
    path: '/api/v1/me',
    who: 'token',
    summary: 'The name, kind and role of the caller',
    answer: z.object({
      name: z.string(),
      kind: z.enum(['agent', 'person', 'operator']),
      role: z.enum(ROLES).optional(),
      expires_at: z.string().optional().describe('Browser sessions only'),
    }),
  },
} as const satisfies Routes

/**
 * The HTTP API as one table, assembled from the rooms. The server's routes, the OpenAPI document and the typed client
 * all derive from it. The OpenAPI document keeps this order.
 */
export const ROUTES = {
  ...HEALTH_ROUTES,
  ...SIGN_IN_ROUTES,
  ...COMMAND_ROUTES,
  ...AGENT_ROUTES,
  ...TERMINAL_ROUTES,
  ...FIGURE_ROUTES,
  ...HALT_ROUTES,
  ...WEBHOOK_ROUTES,
  ...MESSAGE_ROUTES,
  ...TASK_ROUTES,
  ...RUN_ROUTES,
  ...PEOPLE_ROUTES,
  ...AUDIT_ROUTES,
  ...STATE_ROUTES,
  ...EVENT_ROUTES,
  ...RULE_ROUTES,
  ...TOKEN_ROUTES,
  ...MCP_ROUTES,
  ...MODERATION_ROUTES,
  ...GITHUB_ROUTES,
  ...HOOK_ROUTES,
  ...DESCRIPTION_ROUTES,
} as const satisfies Routes

export type RouteName = keyof typeof ROUTES
type RouteTable = typeof ROUTES

/** The query as a client sends it; `ParsedQueryOf` is the query as the handler gets it. */
export type QueryOf<Name extends RouteName> = RouteTable[Name] extends { query: infer Q extends z.ZodType }
  ? z.input<Q>
  : Record<never, never>
export type ParsedQueryOf<Name extends RouteName> = RouteTable[Name] extends {
  query: infer Q extends z.ZodType
}
  ? z.output<Q>
  : Record<never, never>
/** The body as a client sends it; `ParsedBodyOf` is the body as the handler gets it. */
export type BodyOf<Name extends RouteName> = RouteTable[Name] extends { body: infer B extends z.ZodType }
  ? z.input<B>
  : undefined
export type ParsedBodyOf<Name extends RouteName> = RouteTable[Name] extends {
  body: infer B extends z.ZodType
}
  ? z.output<B>
  : undefined
export type AnswerOf<Name extends RouteName> = z.output<RouteTable[Name]['answer']>

export type ReceiptAnswer = z.output<typeof ReceiptSchema>
export type MailAnswer = z.output<typeof MailSchema>
export type AuditEntryAnswer = z.output<typeof AuditEntrySchema>

// Clients import this file only, so the schemas and event types they need are exported here too.
export { AgentSchema } from '../agents/api.ts'
export { AuditEntrySchema } from '../audit/api.ts'
export type { Route } from '../base/route.ts'
export { MAX_COMMANDS } from '../commands/api.ts'
export { MailSchema } from '../messages/api.ts'
export { HumanRequestSchema } from '../people/api.ts'
export { ErrorAnswer, ReceiptSchema } from '../protocol/receipt.ts'
export type { RunUpdate } from '../runs/api.ts'
export type { TaskStreamEvent } from '../tasks/api.ts'
