/** JSON-RPC with the app-server of Codex, which holds the conversation that the pane shows. */
import { realpath } from 'node:fs/promises'
import { z } from 'zod'
import { UNWANTED } from './records.ts'
import { openUnixWebSocket, type UnixWebSocket } from './unix-web-socket.ts'

/** Some requests are never answered, such as the interruption of a turn that has just ended. */
const ANSWER_MS = 20_000

export type RequestId = string | number

/** The server answered with an error: what was asked for was surely not done. */
export class Refused extends Error {
  constructor(method: string, message: string) {
    super(`${method}: ${message}`)
    this.name = 'Refused'
  }
}

/** No answer came: nobody knows whether it was done. */
export class Unanswered extends Error {
  /** The connection broke; whoever holds it knows already. */
  readonly isLost: boolean

  constructor(method: string, reason: string, isLost: boolean) {
    super(`${method}: ${reason}`)
    this.name = 'Unanswered'
    this.isLost = isLost
  }
}

export interface AppServer {
  /** Rejects with `Refused` or `Unanswered`. */
  request<T>(method: string, params: object, answer: z.ZodType<T>): Promise<T>
  /** Answers a request of the server's. */
  reply(id: RequestId, result: object): void
  close(): void
  readonly closed: Promise<string>
}

export interface AppServerEvents {
  notified(method: string, params: unknown): void
  /** The server asks, and every client of the conversation is asked; who answers first decides. */
  asked(id: RequestId, method: string, params: unknown): void
  /** What came in is not what this version is known to send. It is passed over: the service goes on. */
  strange(error: unknown): void
}

const Incoming = z.object({
  id: z.union([z.string(), z.number()]).optional(),
  method: z.string().optional(),
  params: z.unknown().optional(),
  result: z.unknown().optional(),
  error: z.object({ message: z.string() }).optional(),
})

interface Asked {
  method: string
  answered(result: unknown): void
  failed(error: Error): void
}

/** Rejects when nobody listens there (yet). */
export async function openAppServer(socketPath: string, events: AppServerEvents): Promise<AppServer> {
  const waiting = new Map<RequestId, Asked>()
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
    else asked?.failed(new Refused(asked.method, error.message))
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
    for (const { method, failed } of waiting.values()) failed(new Unanswered(method, reason, true))
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
      const asked: Asked = {
        method,
        answered: (result) => settle(() => resolve(result)),
        failed: (error) => settle(() => reject(error)),
      }
      const timer = setTimeout(
        () => asked.failed(new Unanswered(method, `no answer within ${ANSWER_MS / 1000} s`, false)),
        ANSWER_MS,
      )
      timer.unref()
      waiting.set(id, asked)
      if (!socket.send(JSON.stringify({ id, method, params }))) {
        asked.failed(new Refused(method, 'the connection is closed'))
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
        // Pages of a thread's items are behind it.
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
