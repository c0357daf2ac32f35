import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Screens, TerminalHolders } from '../../agents/routes/terminals.ts'
import type { AuditVerdict } from '../../audit/verify-store.ts'
import type { Principal } from '../../base/agent.ts'
import type { Engine } from '../../engine.ts'
import type { AnswerOf, BodyOf, ParsedQueryOf, RouteName } from '../contract.ts'
import type { ApiCaller, Logins } from './authenticate.ts'
import type { Feed } from './feed.ts'
import type { Metrics } from './metrics.ts'
import type { OpenCalls } from './open-calls.ts'

/** Facts about the service that its embedder passes in. */
export interface ServiceInfo {
  version: string
  startedAt: number
  storePlace: string
  configStatus: () => { file?: string; loadedAt: number; problem?: string }
  verifyAudit: () => Promise<AuditVerdict>
  /** Called when a caller asks the service to stop. */
  onStop?: (agents: 'end' | 'leave') => void
}

/** The dependencies of every route handler. */
export interface ApiContext extends ServiceInfo {
  readonly engine: Engine
  readonly metrics: Metrics
  readonly feed: Feed
  readonly openCalls: OpenCalls
  readonly mcp: McpEndpoint
  readonly logins: Logins
  readonly screens: Screens
  readonly terminals: TerminalHolders
  /** The name of the browser session's cookie. */
  cookie(): string
}

/** An authenticated request with validated input. */
export interface ApiCall<Name extends RouteName = RouteName> {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
  readonly caller: ApiCaller
  /** The agent's registered name, or the person's name. */
  readonly callerName: string
  /** True for people, whatever their role: they read everything the operator reads. */
  readonly isPerson: boolean
  readonly params: Readonly<Record<string, string>>
  readonly query: ParsedQueryOf<Name>
  readonly body: BodyOf<Name>
}

/** Returned by handlers that write the response themselves: streams, and formats other than JSON. */
export const SENT: AlreadySent = { sent: true }

export interface AlreadySent {
  readonly sent: true
}

export type RouteHandler<Name extends RouteName> = (
  context: ApiContext,
  call: ApiCall<Name>,
) => Promise<AnswerOf<Name> | AlreadySent> | AnswerOf<Name> | AlreadySent

/** Answers MCP clients with web-standard requests and responses. Stateless: every exchange stands alone. */
export type McpEndpoint = (exchange: McpExchange) => Promise<Response>

/** An authenticated POST from an MCP client. */
export interface McpExchange {
  principal: Principal
  /** Carries the protocol's headers only; `body` holds the parsed body. */
  request: Request
  body: unknown
  /** Same key, same effect: the command runs once (C25). */
  idempotencyKey?: string
  /** Runs the effect after the client has received the whole response. */
  onTaken(effect: () => void): void
}
