/** opencode's HTTP server as far as the program uses it, with what it says recorded from the real one (1.18.33). */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { OpenCodeMessage } from '../../../src/programs/opencode/records.ts'
import { connectServer } from '../../../src/programs/opencode/server.ts'

export const OWN = 'ses_own'

/** The lines of a recorded stream of events. */
export function recorded(name: string): string[] {
  return readFileSync(join(import.meta.dirname, 'fixtures', `${name}.jsonl`), 'utf8')
    .trim()
    .split('\n')
}

type Call = { readonly path: string; readonly body: unknown }

export async function startFakeServer() {
  const calls: Call[] = []
  const streams = new Set<ServerResponse>()
  const listeners = new Set<() => void>()
  /** Responses to GET requests; a test may change them. */
  const answers: Record<string, unknown> = {
    '/session/status': {},
    '/permission': [],
    '/question': [],
    '/config/providers': {
      providers: [{ id: 'fake', models: { m: { limit: { context: 100_000, output: 8_000 } } } }],
    },
    [`/session/${OWN}`]: { id: OWN, time: { created: 1 } },
  }
  const delays = new Map<string, number>()
  let messages: OpenCodeMessage[] = []
  let isRefusing = false

  const server = createServer((request, response) => void handle(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  async function handle(request: IncomingMessage, response: ServerResponse) {
    const url = new URL(request.url ?? '/', 'http://localhost')
    const login = Buffer.from('orchub:secret').toString('base64')
    if (request.headers.authorization !== `Basic ${login}`) return void response.writeHead(401).end()
    if (url.pathname === '/event') return open(response)
    let text = ''
    for await (const chunk of request) text += chunk
    if (request.method === 'POST')
      return post(url.pathname, text === '' ? undefined : JSON.parse(text), response)
    if (url.pathname.endsWith('/message')) return page(url, response)
    const answer = answers[url.pathname]
    await sleep(delays.get(url.pathname) ?? 0)
    response.writeHead(answer === undefined ? 404 : 200).end(JSON.stringify(answer ?? {}))
  }

  function open(response: ServerResponse) {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: {"type":"server.connected","properties":{}}\n\n')
    streams.add(response)
    response.on('close', () => streams.delete(response))
    for (const listener of listeners) listener()
  }

  function post(path: string, body: unknown, response: ServerResponse) {
    if (isRefusing) return void response.writeHead(400).end('{"message":"no"}')
    calls.push({ path, body })
    for (const listener of listeners) listener()
    if (path === '/session') return void response.end(JSON.stringify({ id: OWN, time: { created: 1 } }))
    response
      .writeHead(path.endsWith('/prompt_async') ? 204 : 200)
      .end(path.endsWith('prompt_async') ? '' : 'true')
  }

  /** Two at a time, from the newest on. */
  function page(url: URL, response: ServerResponse) {
    const end = Number(url.searchParams.get('before') ?? messages.length)
    const start = Math.max(0, end - 2)
    if (start > 0) response.setHeader('x-next-cursor', String(start))
    response.end(JSON.stringify(messages.slice(start, end)))
  }

  function until(holds: () => boolean): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const look = () => {
      if (!holds()) return
      listeners.delete(look)
      resolve()
    }
    listeners.add(look)
    look()
    return promise
  }

  return {
    calls,
    answers,
    api: connectServer({ port, username: 'orchub', password: 'secret' }),
    connectTo: (password: string) => connectServer({ port, username: 'orchub', password }),
    setMessages: (next: OpenCodeMessage[]) => (messages = next),
    refuse: () => (isRefusing = true),
    /** Delays the response to a GET of that path. */
    delay: (path: string, ms: number) => delays.set(path, ms),
    emit(...events: string[]) {
      for (const stream of streams) for (const event of events) stream.write(`data: ${event}\n\n`)
    },
    called: (path: string) => until(() => calls.some((call) => call.path === path)),
    connected: () => until(() => streams.size > 0),
    /** The connection breaks; the server goes on. */
    drop() {
      for (const stream of streams) stream.destroy()
      streams.clear()
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

export type FakeServer = Awaited<ReturnType<typeof startFakeServer>>
