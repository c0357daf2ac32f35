import type { z } from 'zod'
import { AGENT_ROUTES, TERMINAL_ROUTES, TOKEN_ROUTES } from '../agents/api.ts'
import { AUDIT_ROUTES, type AuditEntrySchema, EVENT_ROUTES } from '../audit/api.ts'
import type { Routes } from '../base/route.ts'
import { COMMAND_ROUTES, HOOK_ROUTES, MCP_ROUTES } from '../commands/api.ts'
import { GITHUB_ROUTES, MODERATION_ROUTES } from '../github/api.ts'
import { HALT_ROUTES } from '../halt/api.ts'
import { type MailSchema, MESSAGE_ROUTES } from '../messages/api.ts'
import { PEOPLE_ROUTES } from '../people/api.ts'
import type { ReceiptSchema } from '../protocol/receipt-schema.ts'
import { RULE_ROUTES } from '../rules/api.ts'
import { RUN_ROUTES } from '../runs/api.ts'
import { TASK_ROUTES } from '../tasks/api.ts'
import { WEBHOOK_ROUTES } from '../webhooks/api.ts'
import {
  DESCRIPTION_ROUTES,
  FIGURE_ROUTES,
  HEALTH_ROUTES,
  SIGN_IN_ROUTES,
  STATE_ROUTES,
} from './service-api.ts'

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
export type BodyOf<Name extends RouteName> = RouteTable[Name] extends { body: infer B extends z.ZodType }
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
export { ErrorAnswer, ReceiptSchema } from '../protocol/receipt-schema.ts'
export type { RunUpdate } from '../runs/api.ts'
export type { TaskStreamEvent } from '../tasks/api.ts'
