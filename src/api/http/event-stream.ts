import type { ServerResponse } from 'node:http'
import { SECURITY_HEADERS } from './answer.ts'
import { drained } from './drained.ts'
import type { OpenCall } from './open-calls.ts'

/** Server-sent events to one reader. */
interface EventStream {
  readonly signal: AbortSignal
  /** False once the reader lags behind: then wait until `drained` before sending more. */
  send(text: string): boolean
  drained(): Promise<void>
  end(): void
}

/** So that both sides, and whatever stands between, notice a dead connection. */
const HEARTBEAT_MS = 15_000
const HEARTBEAT = ': still here\n\n'
/** What a browser's own EventSource waits before it connects again. */
const RETRY = 'retry: 1000\n'

/** `from`: the id to resume after if the connection breaks before the first event. */
export function startEventStream(outgoing: ServerResponse, call: OpenCall, from?: number): EventStream {
  outgoing.writeHead(200, {
    'content-type': 'text/event-stream',
    'x-accel-buffering': 'no',
    ...SECURITY_HEADERS,
  })
  outgoing.write(from === undefined ? `${RETRY}\n` : `${RETRY}id: ${from}\n\n`)
  const heartbeat = setInterval(() => {
    if (!outgoing.writableNeedDrain) outgoing.write(HEARTBEAT)
  }, HEARTBEAT_MS)
  heartbeat.unref()
  return {
    signal: call.signal,
    send: (text) => outgoing.write(text),
    drained: () => drained(outgoing, call.signal),
    end() {
      clearInterval(heartbeat)
      call.done()
      outgoing.end()
    },
  }
}

export function formatEvent(event: string, id: string | number, json: string): string {
  return `event: ${event}\nid: ${id}\ndata: ${json}\n\n`
}
