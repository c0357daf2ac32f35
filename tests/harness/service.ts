import { type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { type ServiceOptions, startService } from '../../src/api/service.ts'
import type { CommandEntry } from '../../src/commands/commands.ts'
import type { ConfigInput } from '../../src/config/config.ts'
import type { Models } from '../../src/llm/llm.ts'
import { verifyStoredAudit } from '../../src/main.ts'
import { openTestEngine } from './engine.ts'

export interface Reply {
  status: number
  headers: IncomingMessage['headers']
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  json: any
}

export interface Send {
  token?: string | undefined
  body?: unknown
  headers?: Record<string, string>
  socket?: string
}

const TEAM: Omit<ConfigInput, 'store' | 'service'> = {
  agents: { Master: {}, Worker: { parent: 'Master' }, Other: {} },
  limits: { rate: 'off', hops: 'off', ping_pong: 'off' },
}

export type TestService = Awaited<ReturnType<typeof openTestService>>

/** A whole service on a free port: a real store and real HTTP, with the engine's time under the test's control. */
export async function openTestService(
  input: Partial<Omit<ConfigInput, 'store' | 'service'>> = {},
  options: { commands?: CommandEntry[]; models?: Models; service?: Partial<ServiceOptions> } = {},
) {
  const engine = await openTestEngine(
    { ...TEAM, ...input },
    {
      ...(options.commands === undefined ? {} : { commands: options.commands }),
      ...(options.models === undefined ? {} : { models: options.models }),
    },
  )
  const http = await startService({
    engine: engine.engine,
    listen: { host: '127.0.0.1', port: 0 },
    allowedHosts: [],
    version: '1.2.3',
    startedAt: engine.clock.now(),
    configStatus: () => ({ loadedAt: engine.clock.now() }),
    storePlace: 'a test',
    verifyAudit: () => verifyStoredAudit(engine.store),
    ...options.service,
  })
  const port = http.port!
  const mint = async (agent: string | null) => (await engine.tokens.mint(agent)).token
  const operator = await mint(null)
  const master = await mint('Master')
  const worker = await mint('Worker')
  const other = await mint('Other')
  const host = `127.0.0.1:${port}`

  /** As the operator, unless another token is given; `token: undefined` sends none. */
  const call = (method: string, path: string, send: Send = {}) =>
    callAt({ port }, method, path, { token: operator, ...send })

  return {
    ...engine,
    http,
    port,
    host,
    url: http.url,
    tokens: { operator, master, worker, other },
    mint,
    tokenBook: engine.tokens,
    call,
    get: (path: string, token = operator) => call('GET', path, { token }),
    /** One command, or several, of an agent. */
    command: (token: string, body: unknown, headers: Record<string, string> = {}) =>
      call('POST', '/api/v1/commands', { token, body, headers }),
    text: (token: string, text: string, headers: Record<string, string> = {}) =>
      call('POST', '/api/v1/commands', {
        token,
        body: text,
        headers: { 'content-type': 'text/plain', ...headers },
      }),
    raw: (bytes: string | Buffer) => exchange(port, bytes),
    async close() {
      await http.close()
      await engine.close()
    },
  }
}

export function callAt(
  place: { port: number } | { socketPath: string },
  method: string,
  path: string,
  { token, body, headers = {} }: Send,
): Promise<Reply> {
  const bytes =
    body === undefined ? undefined : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  return new Promise((resolve, reject) => {
    const asked = request({
      ...place,
      host: '127.0.0.1',
      method,
      path,
      agent: false,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(bytes === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': bytes.length }),
        ...headers,
      },
    })
    asked.once('error', reject)
    asked.once('response', async (answer) => {
      let text = ''
      answer.setEncoding('utf8')
      try {
        for await (const chunk of answer) text += chunk
      } catch (error) {
        reject(error as Error)
        return
      }
      resolve({ status: answer.statusCode!, headers: answer.headers, text, json: parse(text) })
    })
    asked.end(bytes)
  })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Sends bytes as they are and gives everything that comes back until the other side closes. */
export function exchange(port: number, bytes: string | Buffer): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    let text = ''
    socket.setEncoding('utf8')
    socket.on('data', (chunk) => (text += chunk))
    socket.on('error', () => resolve(text))
    socket.on('close', () => resolve(text))
  })
}

export interface OpenStream {
  status: number
  headers: IncomingMessage['headers']
  text(): string
  /** Waits until the text so far fits. */
  until(fits: (text: string) => boolean): Promise<void>
  ended: Promise<void>
  answer: IncomingMessage
  drop(): void
}

/** A stream of events, read as it comes. */
export function openStream(
  port: number,
  path: string,
  token: string,
  headers: Record<string, string> = {},
): Promise<OpenStream> {
  return new Promise((resolve, reject) => {
    const asked = request({
      host: '127.0.0.1',
      port,
      path,
      agent: false,
      headers: { authorization: `Bearer ${token}`, accept: 'text/event-stream', ...headers },
    })
    asked.once('error', reject)
    asked.once('response', (answer) => {
      let text = ''
      const watchers = new Set<() => void>()
      answer.setEncoding('utf8')
      answer.on('data', (chunk) => {
        text += chunk
        for (const watcher of [...watchers]) watcher()
      })
      answer.on('error', () => {})
      resolve({
        status: answer.statusCode!,
        headers: answer.headers,
        text: () => text,
        until: (fits) =>
          new Promise((done) => {
            const look = () => {
              if (!fits(text)) return
              watchers.delete(look)
              done()
            }
            watchers.add(look)
            look()
          }),
        ended: new Promise((done) => answer.once('close', done)),
        answer,
        drop: () => asked.destroy(),
      })
    })
    asked.end()
  })
}

export interface SeenEvent {
  event: string
  id: number | string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into events of every shape.
  data: any
}

export function eventsIn(text: string): SeenEvent[] {
  const blocks = text.slice(0, text.lastIndexOf('\n\n') + 2).split('\n\n')
  return blocks
    .filter((block) => block.includes('data: '))
    .map((block) => {
      const field = (name: string) => block.split('\n').find((line) => line.startsWith(`${name}: `))
      const id = field('id')!.slice('id: '.length)
      return {
        event: field('event')!.slice('event: '.length),
        id: /^\d+$/.test(id) ? Number(id) : id,
        data: JSON.parse(field('data')!.slice('data: '.length)),
      }
    })
}
