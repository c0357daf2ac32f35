import type { ServerResponse } from 'node:http'
import type { Log } from '../base/log.ts'
import { drained, SECURITY_HEADERS } from './http-response.ts'
import type { OpenCall } from './open-calls.ts'

/** A stream of server-sent events to one reader. */
interface EventStream {
  readonly signal: AbortSignal
  /** Returns false when the reader lags behind: then await `drained` before sending more. */
  send(text: string): boolean
  drained(): Promise<void>
  end(): void
}

/** Lets both sides, and proxies between them, notice a dead connection. */
const HEARTBEAT_MS = 15_000
const HEARTBEAT = ': still here\n\n'
/** The delay before a browser's EventSource reconnects. */
const RETRY = 'retry: 1000\n'

/** `from`: the id to resume after when the connection breaks before the first event. */
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

/** Ends a stream after an error. The reader reconnects and then gets an error response. */
export function abortStream(log: Log, outgoing: ServerResponse, error: unknown) {
  if (!outgoing.destroyed) log.error({ err: error }, 'an event stream failed')
  outgoing.destroy()
}
