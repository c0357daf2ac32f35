import {
  type ClientConnection,
  client,
  methods,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
} from '@agentclientprotocol/sdk'
import type { AgentProcess } from './agent-process.ts'
import { openMessageStream } from './message-stream.ts'

const GARBAGE_TOLD = 3
const GARBAGE_SHOWN = 200

export interface ConnectionOrder {
  readonly process: AgentProcess
  readonly lineBytes: number
  onUpdate(params: unknown): void
  /** A session/prompt was taken by the pipe, to its last byte. */
  onPromptWritten(): void
  /** What came that is no ACP: the first few, shortened. */
  onGarbage(what: string): void
  /** While it is pending nothing more is read from the agent. */
  hold(): Promise<void> | undefined
  ask(request: RequestPermissionRequest, id: string, gone: AbortSignal): Promise<RequestPermissionResponse>
}

/** Our side of the protocol: we answer requests for leave, and nothing else. */
export function connect(order: ConnectionOrder): ClientConnection {
  let garbage = 0
  return client({ name: 'orchub' })
    .onRequest(methods.client.session.requestPermission, ({ params, requestId, signal }) =>
      order.ask(params, String(requestId), signal),
    )
    .connect(
      openMessageStream({
        stdin: order.process.stdin,
        stdout: order.process.stdout,
        lineBytes: order.lineBytes,
        onUpdate: order.onUpdate,
        onWritten(message) {
          if ('method' in message && message.method === methods.agent.session.prompt) order.onPromptWritten()
        },
        onGarbage(what) {
          garbage += 1
          if (garbage <= GARBAGE_TOLD) order.onGarbage(what.slice(0, GARBAGE_SHOWN))
        },
        hold: order.hold,
      }),
    )
}

/** Why the connection broke, unless it was simply closed. */
export function brokenBy(connection: ClientConnection): Error | undefined {
  const { reason } = connection.signal
  // The library's own word for an end that nobody gave a reason for.
  return reason instanceof Error && reason.message !== 'ACP connection closed' ? reason : undefined
}
