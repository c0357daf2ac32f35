import type { RouteHandler } from '../../api/http/call.ts'
import { AppError } from '../../base/errors.ts'

/**
 * A hook of an agent's program: the session of the agent whose token it carries answers it. The program waits as long
 * as it takes, for a person may have to decide; nothing here has a time limit. When the program hangs up, the session
 * is told, and when the service stops, so is the program.
 */
export const takeHook: RouteHandler<'hook'> = async ({ engine, openCalls }, call) => {
  if (call.isOperator) throw notAnAgent()
  const open = openCalls.open('hook', call.caller, call.outgoing)
  try {
    const answer = await Promise.race([
      engine.sessions.hook(call.me, call.body, open.signal),
      endOf(open.signal),
    ])
    if (answer !== undefined) return answer
    // A session that was told of the end has nothing more to say; the program is told why.
    if (open.signal.reason instanceof AppError) throw open.signal.reason
    return {}
  } finally {
    open.done()
  }
}

/** No session can keep a caller that is gone, a revoked token or a service that stops. */
function endOf(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined)
    else signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
}

function notAnAgent(): AppError {
  return new AppError(
    'FORBIDDEN',
    'A hook is what the program of an agent says, and the operator is no agent',
    {
      hint: "Send it with the agent's own token: its program has it as ORC_TOKEN. `orc token AGENT` makes one.",
    },
  )
}
