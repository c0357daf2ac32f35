/** JSON-RPC with Codex's app-server, which holds the conversation that the pane shows. */
import { realpath } from 'node:fs/promises'
import { connect } from 'node:net'
import { type ClientOptions, WebSocket } from 'ws'
import { z } from 'zod'
import { UNWANTED } from './records.ts'

/** Some requests are never answered, such as interrupting a turn that has just ended. */
const ANSWER_MS = 20_000

export type RequestId = string | number

/** The server responded with an error: the request was certainly not executed. */
export class AppServerRefused extends Error {
  constructor(method: string, message: string) {
    super(`${method}: ${message}`)
    this.name = 'Refused'
  }
}

/** No response: it is unknown whether the request was executed. */
export class AppServerUnanswered extends Error {
  /** The connection broke, as its owner already knows. */
  readonly isLost: boolean

  constructor(method: string, reason: string, isLost: boolean) {
    super(`${method}: ${reason}`)
    this.name = 'Unanswered'
    this.isLost = isLost
  }
}

export interface AppServer {
  /** Rejects with `AppServerRefused` or `AppServerUnanswered`. */
  request<T>(method: string, params: object, answer: z.ZodType<T>): Promise<T>
  /** Responds to a request of the server. */
  reply(id: RequestId, result: object): void
  close(): void
  readonly closed: Promise<string>
}

interface AppServerEvents {
  notified(method: string, params: unknown): void
  /** A request of the server to every client of the conversation; the first response decides. */
  asked(id: RequestId, method: string, params: unknown): void
  /** Unexpected input for this version. It is skipped, and the service continues. */
  strange(error: unknown): void
}

const Incoming = z.object({
  id: z.union([z.string(), z.number()]).optional(),
  method: z.string().optional(),
  params: z.unknown().optional(),
  result: z.unknown().optional(),
  error: z.object({ message: z.string() }).optional(),
})

interface AppServerQuestion {
  method: string
  answered(result: unknown): void
  failed(error: Error): void
}

/** Rejects if no server listens there (yet). */
export async function openAppServer(socketPath: string, events: AppServerEvents): Promise<AppServer> {
  const waiting = new Map<RequestId, AppServerQuestion>()
  let count = 0

  function take(text: string) {
    const { id, method, params, result, error } = Incoming.parse(JSON.parse(text))
    if (method !== undefined) {
      if (id === undefined) events.notified(method, params)
      else events.asked(id, method, params)
      return
    }
    const asked = id === undefined ? undefined : waiting.get(id)
    if (error === undefined) asked?.answered(result)
    else asked?.failed(new AppServerRefused(asked.method, error.message))
  }

  // Codex puts a link here, to a socket whose path is short enough for every system.
  const socket: UnixWebSocket = await openUnixWebSocket(await realpath(socketPath), (text) => {
    try {
      take(text)
    } catch (error) {
      events.strange(error)
    }
  })
  void socket.closed.then((reason) => {
    for (const { method, failed } of waiting.values()) failed(new AppServerUnanswered(method, reason, true))
  })

  function request<T>(method: string, params: object, answer: z.ZodType<T>): Promise<T> {
    count += 1
    const id = count
    return new Promise<unknown>((resolve, reject) => {
      const settle = (then: () => void) => {
        clearTimeout(timer)
        waiting.delete(id)
        then()
      }
      const asked: AppServerQuestion = {
        method,
        answered: (result) => settle(() => resolve(result)),
        failed: (error) => settle(() => reject(error)),
      }
      const timer = setTimeout(
        () => asked.failed(new AppServerUnanswered(method, `no answer within ${ANSWER_MS / 1000} s`, false)),
        ANSWER_MS,
      )
      timer.unref()
      waiting.set(id, asked)
      if (!socket.send(JSON.stringify({ id, method, params }))) {
        asked.failed(new AppServerRefused(method, 'the connection is closed'))
      }
    }).then((result) => answer.parse(result))
  }

  const server: AppServer = {
    request,
    reply: (id, result) => void socket.send(JSON.stringify({ id, result })),
    close: () => socket.close(),
    closed: socket.closed,
  }
  await request(
    'initialize',
    {
      clientInfo: { name: 'orchub', title: 'Orchub', version: '1' },
      capabilities: {
        // Enables paging through a thread's items.
        experimentalApi: true,
        requestAttestation: false,
        optOutNotificationMethods: UNWANTED,
      },
    },
    z.unknown(),
  )
  socket.send(JSON.stringify({ method: 'initialized' }))
  return server
}

/** Conversations of weeks fit, while a runaway peer cannot exhaust the memory. */
const MAX_PAYLOAD = 256 * 1024 * 1024

/** Wait this long for the peer's half of the closing handshake; the app-server on the same machine answers at once. */
const CLOSE_TIMEOUT_MS = 500

export interface UnixWebSocket {
  /** Returns false when the connection is over and nothing was sent. */
  send(text: string): boolean
  close(): void
  /** Resolves with the reason why the connection ended; never rejects. */
  readonly closed: Promise<string>
}

/**
 * Opens a WebSocket over a unix socket, which Node's own WebSocket does not support. Rejects when no server
 * listens at the path.
 */
export function openUnixWebSocket(path: string, onText: (text: string) => void): Promise<UnixWebSocket> {
  const { promise: closed, resolve: end } = Promise.withResolvers<string>()
  // The types do not know `closeTimeout` yet.
  const options: ClientOptions & { closeTimeout: number } = {
    // Unlike a ws+unix: URL, this takes paths with any character.
    createConnection: () => connect(path),
    maxPayload: MAX_PAYLOAD,
    perMessageDeflate: false,
    closeTimeout: CLOSE_TIMEOUT_MS,
  }
  const socket = new WebSocket('ws://localhost/', options)
  socket.on('message', (data, isBinary) => {
    if (!isBinary) onText(String(data))
  })
  socket.on('error', (error) => end(error.message))
  socket.on('close', () => end('the connection was closed'))
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once('open', () =>
      resolve({
        closed,
        close: () => socket.close(),
        send: (text) => {
          if (socket.readyState !== WebSocket.OPEN) return false
          socket.send(text)
          return true
        },
      }),
    )
  })
}
