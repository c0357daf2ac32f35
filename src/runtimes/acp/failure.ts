import { RequestError } from '@agentclientprotocol/sdk'
import { z } from 'zod'

/** ACP's: the agent wants a login first. */
const AUTH_REQUIRED = -32000

/** By these an agent surely says that it did not take a turn: login, unknown session, a request it cannot read. */
const REFUSALS: ReadonlySet<number> = new Set([AUTH_REQUIRED, -32002, -32600, -32601, -32602, -32700])

/** The agent's words for what went wrong; adapters hide the reason in `data`. */
export function describeError(error: unknown): string {
  if (error instanceof z.ZodError) {
    const places = error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`)
    return `its answer is malformed (${places.join('; ')})`
  }
  if (!(error instanceof RequestError)) return error instanceof Error ? error.message : String(error)
  const details = z.object({ details: z.string() }).safeParse(error.data)
  const reason = typeof error.data === 'string' ? error.data : details.data?.details
  return `${error.message} (${error.code}${reason === undefined ? '' : `: ${reason.slice(0, 300)}`})`
}

export function wantsLogin(error: unknown): boolean {
  return error instanceof RequestError && error.code === AUTH_REQUIRED
}

export function isRefusal(error: unknown): boolean {
  return error instanceof RequestError && REFUSALS.has(error.code)
}
