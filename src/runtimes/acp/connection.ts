import {
  type ClientConnection,
  type ClientContext,
  client,
  methods,
  RequestError,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
} from '@agentclientprotocol/sdk'
import { z } from 'zod'
import type { AgentProcess } from './agent-process.ts'
import { openMessageStream } from './message-stream.ts'

const GARBAGE_TOLD = 3
const GARBAGE_SHOWN = 200

interface ConnectionOrder {
  readonly process: AgentProcess
  readonly lineBytes: number
  onUpdate(params: unknown): void
  /** The pipe accepted a complete session/prompt. */
  onPromptWritten(): void
  /** Input that is not ACP: the first few, shortened. */
  onGarbage(what: string): void
  /** While pending, nothing more is read from the agent. */
  hold(): Promise<void> | undefined
  ask(request: RequestPermissionRequest, id: string, signal: AbortSignal): Promise<RequestPermissionResponse>
}

/** Our side of the protocol: we only answer permission requests. */
export function connect(options: ConnectionOrder): ClientConnection {
  let garbage = 0
  return client({ name: 'orchub' })
    .onRequest(methods.client.session.requestPermission, ({ params, requestId, signal }) =>
      options.ask(params, String(requestId), signal),
    )
    .connect(
      openMessageStream({
        stdin: options.process.stdin,
        stdout: options.process.stdout,
        lineBytes: options.lineBytes,
        onUpdate: options.onUpdate,
        onWritten(message) {
          if ('method' in message && message.method === methods.agent.session.prompt)
            options.onPromptWritten()
        },
        onGarbage(what) {
          garbage += 1
          if (garbage <= GARBAGE_TOLD) options.onGarbage(what.slice(0, GARBAGE_SHOWN))
        },
        hold: options.hold,
      }),
    )
}

/** Why the connection broke, unless it was closed normally. */
export function brokenBy(connection: ClientConnection): Error | undefined {
  const { reason } = connection.signal
  // The library's message for an end without a reason.
  return reason instanceof Error && reason.message !== 'ACP connection closed' ? reason : undefined
}

const Injected = z.object({ outcome: z.literal('injected') })

/**
 * Inserts text into the running turn with an ACP extension that some agents have. Resolves with false if that
 * failed.
 */
export async function steer(agent: ClientContext, sessionId: string, text: string): Promise<boolean> {
  try {
    const answer: unknown = await agent.request('_session/steering', {
      sessionId,
      prompt: [{ type: 'text', text }],
      // Otherwise, between turns, it would start a turn unknown to us.
      _meta: { steering: { idleBehavior: 'promptRequired' } },
    })
    return Injected.safeParse(answer).success
  } catch {
    return false
  }
}

/** ACP's code for a required login. */
const AUTH_REQUIRED = -32000

/** Codes with which an agent certainly rejects a turn: login, unknown session, unreadable request. */
const REFUSALS: ReadonlySet<number> = new Set([AUTH_REQUIRED, -32002, -32600, -32601, -32602, -32700])

/** The agent's error message; adapters hide the reason in `data`. */
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
