import { setTimeout as sleep } from 'node:timers/promises'
import { type OpenCodeEvent, readEvent } from './records.ts'
import type { OpenCodeServer } from './server.ts'

/** A heartbeat comes every 10 s. */
const SILENCE_MS = 25_000
/** The first event comes with the connection; a request during the server's start is never answered. */
const GREETING_MS = 2_000
const FIRST_RETRY_MS = 100
const LAST_RETRY_MS = 2_000

interface StreamHandlers {
  /** After each connection, before its events: missed changes must be read again. */
  connected(): Promise<void>
  event(event: OpenCodeEvent): void | Promise<void>
  lost(reason: string): void
  /** An event with an unexpected shape. */
  strange(error: unknown): void
}

/** Follows the server's events and reconnects until closed. */
export function followEvents(server: OpenCodeServer, handlers: StreamHandlers): { close(): Promise<void> } {
  const closing = new AbortController()
  const running = run()

  async function run() {
    let retryMs = FIRST_RETRY_MS
    while (!closing.signal.aborted) {
      try {
        await followOnce(() => (retryMs = FIRST_RETRY_MS))
        if (!closing.signal.aborted) handlers.lost('opencode closed its event stream')
      } catch (error) {
        if (closing.signal.aborted) return
        handlers.lost(error instanceof Error ? error.message : String(error))
      }
      await sleep(retryMs, undefined, { signal: closing.signal }).catch(() => {})
      retryMs = Math.min(retryMs * 2, LAST_RETRY_MS)
    }
  }

  async function followOnce(greeted: () => void) {
    const silent = new AbortController()
    const patience = (ms: number) =>
      setTimeout(() => silent.abort(new Error('opencode sent no heartbeat in time')), ms)
    let watchdog = patience(GREETING_MS)
    try {
      const body = await server.events(AbortSignal.any([closing.signal, silent.signal]))
      for await (const json of dataOf(body)) {
        // Not during processing, which may last longer than a heartbeat.
        clearTimeout(watchdog)
        await take(json, greeted)
        watchdog = patience(SILENCE_MS)
      }
    } finally {
      clearTimeout(watchdog)
    }
  }

  async function take(json: string, greeted: () => void) {
    let event: OpenCodeEvent | undefined
    try {
      event = readEvent(json)
    } catch (error) {
      handlers.strange(error)
      return
    }
    if (event === undefined) return
    if (event.type !== 'server.connected') return await handlers.event(event)
    await handlers.connected()
    greeted()
  }

  return {
    async close() {
      closing.abort()
      await running
    },
  }
}

/** The data of each event. opencode writes one line of JSON per event. */
async function* dataOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop()!
    for (const line of lines) if (line.startsWith('data:')) yield line.slice('data:'.length).trim()
  }
}
