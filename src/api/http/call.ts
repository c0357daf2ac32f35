import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Screens } from '../../agents/routes/screens.ts'
import type { Terminals } from '../../agents/routes/terminals.ts'
import type { AuditVerdict } from '../../audit/verify-store.ts'
import type { Engine } from '../../engine.ts'
import type { AnswerOf, BodyOf, ParsedQueryOf, RouteName } from '../contract.ts'
import type { McpEndpoint } from '../mcp-endpoint.ts'
import type { Feed } from './feed.ts'
import type { Caller } from './gate.ts'
import type { Logins } from './logins.ts'
import type { Metrics } from './metrics.ts'
import type { OpenCalls } from './open-calls.ts'

/** What the service is told about itself. */
export interface Facts {
  version: string
  startedAt: number
  storePlace: string
  configStatus: () => { file?: string; loadedAt: number; problem?: string }
  verifyAudit: () => Promise<AuditVerdict>
  /** Somebody asks for the service to end. */
  onStop?: (agents: 'end' | 'leave') => void
}

/** What every route works with. */
export interface Desk extends Facts {
  readonly engine: Engine
  readonly metrics: Metrics
  readonly feed: Feed
  readonly openCalls: OpenCalls
  readonly mcp: McpEndpoint
  readonly logins: Logins
  readonly screens: Screens
  readonly terminals: Terminals
  /** What the cookie of a browser's session is called. */
  cookie(): string
}

/** One request, past the gate and with its input checked. */
export interface Call<Name extends RouteName = RouteName> {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
  readonly caller: Caller
  /** The caller's name: an agent's, as it is registered, or a person's. */
  readonly me: string
  /** A person, who reads what the operator reads, whatever their role. */
  readonly isOperator: boolean
  readonly params: Readonly<Record<string, string>>
  readonly query: ParsedQueryOf<Name>
  readonly body: BodyOf<Name>
}

/** For answers that a route writes by itself, piece by piece or in another form than JSON. */
export const SENT: Sent = { sent: true }

export interface Sent {
  readonly sent: true
}

export type RouteHandler<Name extends RouteName> = (
  desk: Desk,
  call: Call<Name>,
) => Promise<AnswerOf<Name> | Sent> | AnswerOf<Name> | Sent
