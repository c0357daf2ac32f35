/** JSON-RPC with Codex's app-server, which holds the conversation that the pane shows. */
import { once } from 'node:events'
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

export type AppServer = Awaited<ReturnType<typeof openAppServer>>

interface AppServerEvents {
  notified(method: string, params: unknown): void
  /** A request of the server to every client of the conversation; the first response decides. */
  asked(id: RequestId, method: string, params: unknown): void
  /** Unexpected input for this version. It is skipped, and the service continues. */
  unexpected(error: unknown): void
}

const Incoming = z.object({
  id: z.union([z.string(), z.number()]).optional(),
  method: z.string().optional(),
  params: z.unknown().optional(),
  result: z.unknown().optional(),
  error: z.object({ message: z.string() }).optional(),
})

interface PendingRequest {
  method: string
  answered(result: unknown): void
  failed(error: Error): void
}

/** Rejects if no server listens there (yet). */
export async function openAppServer(socketPath: string, events: AppServerEvents) {
  const waiting = new Map<RequestId, PendingRequest>()
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

  const { promise: closed, resolve: end } = Promise.withResolvers<string>()
  // Codex puts a link there, to a socket whose path is short enough for every system.
  const socket = await openUnixWebSocket(await realpath(socketPath))
  socket.on('message', (data, isBinary) => {
    if (isBinary) return
    try {
      take(String(data))
    } catch (error) {
      events.unexpected(error)
    }
  })
  socket.on('error', (error) => end(error.message))
  socket.on('close', () => end('the connection was closed'))
  void closed.then((reason) => {
    for (const { method, failed } of waiting.values()) failed(new AppServerUnanswered(method, reason, true))
  })

  function send(message: object): boolean {
    if (socket.readyState !== WebSocket.OPEN) return false
    socket.send(JSON.stringify(message))
    return true
  }

  /** Rejects with `AppServerRefused` or `AppServerUnanswered`. */
  function request<T>(method: string, params: object, answer: z.ZodType<T>): Promise<T> {
    count += 1
    const id = count
    return new Promise<unknown>((resolve, reject) => {
      const settle = (then: () => void) => {
        clearTimeout(timer)
        waiting.delete(id)
        then()
      }
      const asked: PendingRequest = {
        method,
        answered: (result) => settle(() => resolve(result)),
        failed: (error) => settle(() => reject(error)),
      }
      const timer = setTimeout(
        () => asked.failed(new AppServerUnanswered(method, `no answer within ${ANSWER_MS / 1000} s`, false)),
        ANSWER_MS,
      ).unref()
      waiting.set(id, asked)
      if (!send({ id, method, params }))
        asked.failed(new AppServerRefused(method, 'the connection is closed'))
    }).then((result) => answer.parse(result))
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
  send({ method: 'initialized' })
  return {
    request,
    /** Responds to a request of the server. */
    reply: (id: RequestId, result: object) => void send({ id, result }),
    close: () => socket.close(),
    closed,
  }
}

/** Conversations of weeks fit, while a runaway peer cannot exhaust the memory. */
const MAX_PAYLOAD = 256 * 1024 * 1024

/** Timeout for the server's half of the closing handshake; on the same machine it answers at once. */
const CLOSE_TIMEOUT_MS = 500

/** Node's own WebSocket does not support unix sockets. */
async function openUnixWebSocket(path: string): Promise<WebSocket> {
  // The types do not know `closeTimeout` yet.
  const options: ClientOptions & { closeTimeout: number } = {
    // Unlike a ws+unix: URL, this takes paths with any character.
    createConnection: () => connect(path),
    maxPayload: MAX_PAYLOAD,
    perMessageDeflate: false,
    closeTimeout: CLOSE_TIMEOUT_MS,
  }
  const socket = new WebSocket('ws://localhost/', options)
  await once(socket, 'open')
  return socket
}
