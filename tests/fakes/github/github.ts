/**
 * A fake GitHub on loopback: REST with rate limits and faults, and signed webhooks. Calls and answers are validated with
 * GitHub's own description, and an invalid one fails the test. Changes are sent out as webhooks, including our own.
 */
import { createHmac, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { APP, createApp, type FakeApp } from './app.ts'
import { description } from './description.ts'
import { createRepository, type FakeRepository, type FakeThread, showUser } from './repository.ts'
import { findRoute, type Result, refusal } from './routes.ts'

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

/** A fault of one call: a rate limit, an error, no answer, or an effect without an answer. */
export interface Fault {
  fits(call: FakeCall): boolean
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly message?: string
  /** Never answers. */
  readonly hangs?: boolean
  /** Performs the call, then breaks the connection; with `hangs`, never answers. */
  readonly doesIt?: boolean
  times: number
}

export interface SendOptions {
  delivery?: string
  secret?: string
  signature?: string
  body?: string
  contentType?: string
}

export interface FakeOptions {
  /** The path of the API. Enterprise has `/api/v3` and a description of its own. */
  prefix?: string
  /** Accepts the credentials of an App instead of the token. */
  app?: boolean
}

export type FakeGitHub = Awaited<ReturnType<typeof startGitHub>>

export async function startGitHub(
  name = 'octo/hello',
  { prefix = '', app: isApp = false }: FakeOptions = {},
) {
  const repository: FakeRepository = createRepository(name)
  const described = description(prefix === '' ? 'api.github.com' : 'ghes-3.17')
  const calls: FakeCall[] = []
  const faults: Fault[] = []
  const problems: string[] = []
  const open = new Set<ServerResponse>()
  const underWay = new Set<Promise<unknown>>()
  let hook: string | undefined
  const app: FakeApp | undefined = isApp
    ? createApp(async (event, delivery, body) => {
        if (hook === undefined) return undefined
        const answer = await send(hook, event, {}, { delivery, body }).catch(() => undefined)
        return answer?.status
      })
    : undefined

  async function answer(incoming: IncomingMessage, outgoing: ServerResponse) {
    const url = new URL(incoming.url ?? '/', 'http://fake')
    let text = ''
    for await (const chunk of incoming) text += chunk
    const path = url.pathname.startsWith(`${prefix}/`) ? url.pathname.slice(prefix.length) : url.pathname
    const sent = text === '' ? undefined : (JSON.parse(text) as Record<string, unknown>)
    const call: FakeCall = {
      method: incoming.method!,
      path,
      body: sent ?? {},
      headers: incoming.headers,
      status: 0,
    }
    calls.push(call)
    const asked = { method: call.method, path, query: url.searchParams, body: sent }
    const reply = ({ status, data, headers = {} }: Result) => {
      problems.push(
        ...description()
          .problemsOfAnswer(asked, status, data)
          .map((one) => `the fake: ${one}`),
      )
      call.status = status
      outgoing.writeHead(status, { 'content-type': 'application/json; charset=utf-8', ...headers })
      outgoing.end(JSON.stringify(data))
    }
    if (url.pathname === path && prefix !== '') {
      problems.push(`${path} is not below ${prefix}`)
      return reply(refusal(404, 'Not Found'))
    }
    const by = identify(incoming, path)
    if (typeof by === 'object') return reply(by)
    const wrong = described.problemsOfCall(asked)
    if (wrong.length > 0) {
      problems.push(...wrong)
      return reply(refusal(400, wrong.join('; ')))
    }
    const fault = faults.find((one) => one.times > 0 && one.fits(call))
    if (fault !== undefined) {
      fault.times -= 1
      if (fault.hangs && !fault.doesIt) return
      if (!fault.doesIt) {
        const refused = refusal(fault.status ?? 500, fault.message ?? 'Server Error')
        return reply({ ...refused, ...(fault.headers === undefined ? {} : { headers: fault.headers }) })
      }
    }
    const result = app?.route(call.method, path, url.searchParams) ?? route(call, url.searchParams, by)
    if (fault?.doesIt) {
      if (!fault.hangs) outgoing.destroy()
      return
    }
    reply(result)
    if (result.event !== undefined && hook !== undefined) {
      const { type, payload } = result.event
      // Like GitHub, continues if the webhook fails.
      note(send(hook, type, { ...payload, sender: showUser(by) }).catch(() => {}))
    }
  }

  /** Returns the caller, or the refusal. */
  function identify({ headers }: IncomingMessage, path: string): string | Result {
    const [scheme = '', secret = ''] = (headers.authorization ?? '').split(' ')
    const who = app?.identify(scheme, secret, path)
    if (who === 'app' || who === 'installation') return `${APP.slug}[bot]`
    if (who !== undefined) return who
    return secret === TOKEN && !isApp ? BOT : refusal(401, 'Bad credentials')
  }

  function route({ method, path, body }: FakeCall, query: URLSearchParams, by: string): Result {
    const found = findRoute(method, path)
    const [, owner, repo] = /^\/repos\/([^/]+)\/([^/]+)/.exec(path) ?? []
    if (found === undefined || (owner !== undefined && `${owner}/${repo}` !== name))
      return refusal(404, 'Not Found')
    return found.route(repository, { params: found.params, query, body, by })
  }

  function note(sending: Promise<unknown>) {
    underWay.add(sending)
    void sending.finally(() => underWay.delete(sending))
  }

  /** Signs the exact bytes, like GitHub. */
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
        'content-type': options.contentType ?? 'application/json',
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
    url: `http://127.0.0.1:${port}${prefix}`,
    name,
    repository,
    calls,
    /** Calls and answers that don't fit GitHub's description; `close` throws them. */
    problems,
    app,
    /** The calls that changed something. */
    writes: () => calls.filter(({ method, status }) => method !== 'GET' && status < 400),
    fail: (fault: Omit<Fault, 'times'> & { times?: number }) => void faults.push({ times: 1, ...fault }),
    send,
    /** Sets the URL for webhooks. */
    hookTo: (url: string | undefined) => {
      hook = url
    },
    /** Opens an issue as a user. */
    openIssue(thread: Partial<FakeThread> = {}) {
      return repository.open({ ...thread, isPull: false })
    },
    async close() {
      for (const outgoing of open) outgoing.destroy()
      server.close()
      await once(server, 'close')
      await Promise.all(underWay)
      if (problems.length > 0)
        throw new Error(`not as GitHub describes it: ${[...new Set(problems)].join('\n')}`)
    },
  }
}
