/**
 * A GitHub on loopback: REST as the real one speaks it, with its limits and faults, and webhooks with signatures. What
 * it is asked is checked as the real one would; what changes is sent out as webhooks, our own doing too.
 */
import { createHmac, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createRepository, type FakeRepository, type FakeThread } from './repository.ts'
import { findRoute } from './routes.ts'

export const TOKEN = 'a-token-of-the-fake'
export const SECRET = 'the secret of the webhook'
export const BOT = 'orchub-bot'

export interface FakeCall {
  readonly method: string
  readonly path: string
  readonly body: Record<string, unknown>
  readonly headers: IncomingMessage['headers']
  status: number
}

/** Answers one call otherwise than asked: a limit, an error, silence; or does it and hides that it did. */
export interface Fault {
  fits(call: FakeCall): boolean
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly message?: string
  /** Never answers. */
  readonly hangs?: boolean
  /** Does what was asked, then breaks the connection; or with `hangs` leaves it at that. */
  readonly doesIt?: boolean
  times: number
}

export interface SendOptions {
  delivery?: string
  secret?: string
  signature?: string
  body?: string
}

export type FakeGitHub = Awaited<ReturnType<typeof startGitHub>>

export async function startGitHub(name = 'octo/hello') {
  const repository: FakeRepository = createRepository(name)
  const calls: FakeCall[] = []
  const faults: Fault[] = []
  const open = new Set<ServerResponse>()
  let hook: string | undefined

  async function answer(incoming: IncomingMessage, outgoing: ServerResponse) {
    const url = new URL(incoming.url ?? '/', 'http://fake')
    let text = ''
    for await (const chunk of incoming) text += chunk
    const body = text === '' ? {} : (JSON.parse(text) as Record<string, unknown>)
    const call: FakeCall = {
      method: incoming.method!,
      path: url.pathname,
      body,
      headers: incoming.headers,
      status: 0,
    }
    calls.push(call)
    const reply = (status: number, data: unknown, headers: Record<string, string> = {}) => {
      call.status = status
      outgoing.writeHead(status, { 'content-type': 'application/json; charset=utf-8', ...headers })
      outgoing.end(JSON.stringify(data))
    }
    const said = incoming.headers.authorization
    if (said !== `token ${TOKEN}` && said !== `Bearer ${TOKEN}`)
      return reply(401, { message: 'Bad credentials' })
    const fault = faults.find((one) => one.times > 0 && one.fits(call))
    if (fault !== undefined) {
      fault.times -= 1
      if (fault.hangs && !fault.doesIt) return
      if (!fault.doesIt)
        return reply(fault.status ?? 500, { message: fault.message ?? 'Server Error' }, fault.headers)
    }
    const found = findRoute(call.method, url.pathname)
    if (found === undefined) return reply(404, { message: 'Not Found' })
    const [, owner, repo] = /^\/repos\/([^/]+)\/([^/]+)/.exec(url.pathname) ?? []
    if (owner !== undefined && `${owner}/${repo}` !== name) return reply(404, { message: 'Not Found' })
    const result = found.route(repository, { params: found.params, query: url.searchParams, body })
    if (fault?.doesIt) {
      if (!fault.hangs) outgoing.destroy()
      return
    }
    reply(result.status, result.data)
    if (result.event !== undefined && hook !== undefined) {
      const { type, payload } = result.event
      // GitHub, too, goes on when nobody takes it.
      send(hook, type, { ...payload, sender: { login: BOT, type: 'User' } }).catch(() => {})
    }
  }

  /** As GitHub does: the signature is over the very bytes. */
  async function send(
    url: string,
    event: string,
    payload: Record<string, unknown>,
    options: SendOptions = {},
  ) {
    const body =
      options.body ??
      JSON.stringify({ repository: { full_name: name, topics: repository.topics }, ...payload })
    const signature = `sha256=${createHmac('sha256', options.secret ?? SECRET)
      .update(body)
      .digest('hex')}`
    const answered = await fetch(url, {
      method: 'POST',
      body,
      headers: {
        'content-type': 'application/json',
        'x-github-event': event,
        'x-github-delivery': options.delivery ?? randomUUID(),
        'x-hub-signature-256': options.signature ?? signature,
      },
    })
    return { status: answered.status, json: (await answered.json()) as Record<string, unknown> }
  }

  const server = createServer((incoming, outgoing) => {
    open.add(outgoing)
    outgoing.on('close', () => open.delete(outgoing))
    answer(incoming, outgoing).catch(() => outgoing.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  return {
    url: `http://127.0.0.1:${port}`,
    name,
    repository,
    calls,
    /** The calls that changed something. */
    writes: () => calls.filter(({ method, status }) => method !== 'GET' && status < 400),
    fail: (fault: Omit<Fault, 'times'> & { times?: number }) => void faults.push({ times: 1, ...fault }),
    send,
    /** Where what changes is sent to. */
    hookTo: (url: string) => {
      hook = url
    },
    /** Somebody opens an issue. */
    openIssue(thread: Partial<FakeThread> = {}) {
      return repository.open({ ...thread, isPull: false })
    },
    async close() {
      for (const outgoing of open) outgoing.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
