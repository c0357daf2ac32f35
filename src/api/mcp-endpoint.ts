import type { Principal } from '../base/agent.ts'

/** Answers MCP clients, in web-standard terms. It keeps nothing from one exchange to the next. */
export type McpEndpoint = (exchange: McpExchange) => Promise<Response>

/** One POST of a client, past the gate. */
export interface McpExchange {
  principal: Principal
  /** Its headers, as far as they concern the protocol. Its body was read already. */
  request: Request
  body: unknown
  /** As everywhere: the same key acts once (C25). */
  idempotencyKey?: string
  /** Runs the effect when the client has taken the whole answer. */
  onTaken(effect: () => void): void
}
