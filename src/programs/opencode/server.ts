import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { reasonOf } from '../../base/errors.ts'
import {
  ConversationInfo,
  type OpenCodeEvent,
  OpenCodeMessage,
  PermissionRequest,
  Providers,
  QuestionRequest,
  readEvent,
  Status,
} from './records.ts'

const ANSWER_MS = 10_000
/** The first request gathers all models of all providers, which takes long under load. */
const PROVIDERS_MS = 60_000
const PAGE = 100

/** `refused`: no server received it. `lost`: it may have been received. */
export class ServerError extends Error {
  readonly kind: 'refused' | 'lost' | 'answered'
  readonly status: number | undefined

  constructor(kind: ServerError['kind'], message: string, status?: number) {
    super(message)
    this.name = 'ServerError'
    this.kind = kind
    this.status = status
  }
}

export type OpenCodeServer = ReturnType<typeof connectServer>

/** opencode's own HTTP API, beside its terminal interface. */
export function connectServer(options: { port: number; username: string; password: string }) {
  const base = `http://127.0.0.1:${options.port}`
  const login = Buffer.from(`${options.username}:${options.password}`).toString('base64')
  const headers = { authorization: `Basic ${login}`, 'content-type': 'application/json' }

  async function call(method: 'GET' | 'POST', path: string, body?: unknown, timeoutMs = ANSWER_MS) {
    let response: Response
    try {
      response = await fetch(base + path, {
        method,
        headers,
        signal: AbortSignal.timeout(timeoutMs),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
    } catch (error) {
      throw asServerError(error)
    }
    const text = await response.text().catch((error: unknown) => {
      throw asServerError(error)
    })
    if (!response.ok) {
      throw new ServerError(
        'answered',
        `${method} ${path}: ${response.status} ${text.slice(0, 300)}`,
        response.status,
      )
    }
    return { text, cursor: response.headers.get('x-next-cursor') }
  }

  async function get<Schema extends z.ZodType>(path: string, schema: Schema, timeoutMs?: number) {
    return schema.parse(JSON.parse((await call('GET', path, undefined, timeoutMs)).text))
  }

  return {
    /**
     * Succeeds once the server is up. Short timeout: a request during the server's start is never answered.
     */
    ready: () => call('GET', '/session/status', undefined, 1_000),
    conversation: (id: string) => get(`/session/${id}`, ConversationInfo),
    async createConversation(title: string) {
      return ConversationInfo.parse(JSON.parse((await call('POST', '/session', { title })).text))
    },
    /** Shows a conversation in the terminal. */
    show: (id: string) => call('POST', '/tui/select-session', { sessionID: id }),
    /** Conversations that are not idle, including subagents'. */
    statuses: () => get('/session/status', z.record(z.string(), Status)),
    permissions: () => get('/permission', z.array(PermissionRequest)),
    questions: () => get('/question', z.array(QuestionRequest)),
    providers: () => get('/config/providers', Providers, PROVIDERS_MS),
    /** Newest page first, each page in chronological order. */
    async *pages(id: string): AsyncGenerator<OpenCodeMessage[]> {
      let cursor: string | null = null
      do {
        const before: string = cursor === null ? '' : `&before=${encodeURIComponent(cursor)}`
        const page = await call('GET', `/session/${id}/message?limit=${PAGE}${before}`)
        yield z.array(OpenCodeMessage).parse(JSON.parse(page.text))
        cursor = page.cursor
      } while (cursor !== null)
    },
    /** `noReply`: starts no turn; a running one includes it in its next step. */
    prompt: (id: string, text: string, noReply: boolean) =>
      call('POST', `/session/${id}/prompt_async`, {
        parts: [{ type: 'text', text }],
        ...(noReply ? { noReply } : {}),
      }),
    abort: (id: string) => call('POST', `/session/${id}/abort`),
    replyPermission: (id: string, reply: 'once' | 'reject', message?: string) =>
      call('POST', `/permission/${id}/reply`, { reply, ...(message === undefined ? {} : { message }) }),
    answerQuestion: (id: string, answers: string[][]) => call('POST', `/question/${id}/reply`, { answers }),
    rejectQuestion: (id: string) => call('POST', `/question/${id}/reject`),
    /** The event stream; the caller ends it by the signal. */
    async events(signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
      const response = await fetch(`${base}/event`, { headers, signal })
      if (!response.ok || response.body === null) {
        throw new ServerError('answered', `GET /event: ${response.status}`, response.status)
      }
      return response.body
    },
  }
}

const NOT_THERE = new Set(['ECONNREFUSED', 'EADDRNOTAVAIL'])

function asServerError(error: unknown): ServerError {
  const cause = error instanceof Error ? (error.cause as { code?: unknown } | undefined) : undefined
  const kind = typeof cause?.code === 'string' && NOT_THERE.has(cause.code) ? 'refused' : 'lost'
  const message = reasonOf(error)
  return new ServerError(kind, typeof cause?.code === 'string' ? `${message} (${cause.code})` : message)
}

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
  unexpected(error: unknown): void
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
        handlers.lost(reasonOf(error))
      }
      await sleep(retryMs, undefined, { signal: closing.signal }).catch(() => {})
      retryMs = Math.min(retryMs * 2, LAST_RETRY_MS)
    }
  }

  async function followOnce(greeted: () => void) {
    const silent = new AbortController()
    const startTimeout = (ms: number) =>
      setTimeout(() => silent.abort(new Error('opencode sent no heartbeat in time')), ms)
    let watchdog = startTimeout(GREETING_MS)
    try {
      const body = await server.events(AbortSignal.any([closing.signal, silent.signal]))
      for await (const json of dataOf(body)) {
        // Not during processing, which may last longer than a heartbeat.
        clearTimeout(watchdog)
        await take(json, greeted)
        watchdog = startTimeout(SILENCE_MS)
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
      handlers.unexpected(error)
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
