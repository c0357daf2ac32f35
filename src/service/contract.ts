import type { z } from 'zod'
import { SIGN_IN_ROUTES, TOKEN_ROUTES } from './contract/access.ts'
import { AGENT_ROUTES } from './contract/agents.ts'
import { AUDIT_ROUTES, type AuditEntrySchema, EVENT_ROUTES } from './contract/audit.ts'
import { COMMAND_ROUTES, HOOK_ROUTES, MCP_ROUTES } from './contract/commands.ts'
import { GITHUB_ROUTES, MODERATION_ROUTES } from './contract/github.ts'
import { HALT_ROUTES } from './contract/halt.ts'
import { type MailSchema, MESSAGE_ROUTES } from './contract/messages.ts'
import { PEOPLE_ROUTES } from './contract/people.ts'
import type { ReceiptSchema } from './contract/receipt.ts'
import type { Routes } from './contract/route.ts'
import { RULE_ROUTES } from './contract/rules.ts'
import { RUN_ROUTES } from './contract/runs.ts'
import { DESCRIPTION_ROUTES, FIGURE_ROUTES, HEALTH_ROUTES, STATE_ROUTES } from './contract/service.ts'
import { TASK_ROUTES } from './contract/tasks.ts'
import { TERMINAL_ROUTES } from './contract/terminals.ts'
import { WEBHOOK_ROUTES } from './contract/webhooks.ts'

/**
 * The HTTP API as one table, put together from its areas: the server's routes, the OpenAPI document and the typed client
 * are all read off it. The order is that of the OpenAPI document.
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
type Table = typeof ROUTES

/** What a caller gives as the query, and what the route's handler gets of it. */
export type QueryOf<Name extends RouteName> = Table[Name] extends { query: infer Q extends z.ZodType }
  ? z.input<Q>
  : Record<never, never>
export type ParsedQueryOf<Name extends RouteName> = Table[Name] extends { query: infer Q extends z.ZodType }
  ? z.output<Q>
  : Record<never, never>
export type BodyOf<Name extends RouteName> = Table[Name] extends { body: infer B extends z.ZodType }
  ? z.output<B>
  : undefined
export type AnswerOf<Name extends RouteName> = z.output<Table[Name]['answer']>

export type ReceiptAnswer = z.output<typeof ReceiptSchema>
export type MailAnswer = z.output<typeof MailSchema>
export type AuditEntryAnswer = z.output<typeof AuditEntrySchema>

// The folder is private to the contract: whoever needs one of its schemas has it from here.
export { AgentSchema } from './contract/agents.ts'
export { AuditEntrySchema } from './contract/audit.ts'
export { MAX_COMMANDS } from './contract/commands.ts'
export { MailSchema } from './contract/messages.ts'
export { HumanRequestSchema } from './contract/people.ts'
export { ErrorAnswer, ReceiptSchema } from './contract/receipt.ts'
export type { Route } from './contract/route.ts'
export type { RunEvent } from './contract/run-shape.ts'
export type { TaskEvent } from './contract/task-event.ts'
