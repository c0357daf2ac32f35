import type { RouteHandler } from '../../api/http/call.ts'
import { idempotencyKey } from '../../api/http/exchange.ts'

/** A person's question to the team. Closing the connection doesn't cancel it. */
export const takeAsk: RouteHandler<'ask'> = async ({ engine }, { body, callerName, incoming }) => {
  const key = idempotencyKey(incoming.headers['idempotency-key'])
  const { question, agent } = body
  return await engine.asks.ask({ question, ...(agent === undefined ? {} : { agent }) }, callerName, key)
}
