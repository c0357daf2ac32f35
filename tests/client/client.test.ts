import { createServer } from 'node:http'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Client, ClientError, createClient, type FetchLike } from '../../src/client/client.ts'
import { openTestService, type TestService } from '../harness/service.ts'

let service: TestService
let master: Client
let operator: Client
beforeEach(async () => {
  service = await openTestService({
    rules: {
      preset: 'mesh',
      forbid: [{ from: 'Worker', to: 'Other', reason: 'no' }],
      ask: [{ from: 'Other', to: 'Master' }],
    },
  })
  master = createClient({ url: service.url, token: service.tokens.master })
  operator = createClient({ url: `${service.url}/`, token: service.tokens.operator })
})
afterEach(() => service.close())

const message = (content: string, to = 'Worker') => ({ type: 'send_message' as const, to, content })
const contents = async () => (await service.mailOf('Worker')).map((mail) => mail.content)

/** The real fetch, but loses the answers to the first `count` requests after the service has acted. */
function losing(count: number): FetchLike & { sent: { url: string; headers: Record<string, string> }[] } {
  const sent: { url: string; headers: Record<string, string> }[] = []
  let left = count
  const lossy: FetchLike = async (url, init) => {
    sent.push({ url, headers: init.headers })
    const answer = await fetch(url, init)
    if (left-- <= 0) return answer
    await answer.text()
    throw new TypeError('fetch failed')
  }
  return Object.assign(lossy, { sent })
}

describe('a command of the client', () => {
  it('returns its receipt as a value, whatever the status', async () => {
    expect(await master.command(message('hi'))).toMatchObject({ status: 'delivered', to: 'Worker' })
    const worker = createClient({ url: service.url, token: service.tokens.worker })
    expect(await worker.command(message('hi', 'Other'))).toMatchObject({ status: 'blocked' })
    const other = createClient({ url: service.url, token: service.tokens.other })
    expect(await other.command(message('hi', 'Master'))).toMatchObject({
      status: 'held',
      request_id: 'req_1',
    })
    expect(await master.command(message('hi', 'Nobody'))).toMatchObject({
      status: 'error',
      code: 'UNKNOWN_RECIPIENT',
    })
    expect(await master.command({ type: 'fly', high: true })).toMatchObject({ code: 'UNKNOWN_COMMAND' })
  })

  it('is sent alone, in an array, or within a text', async () => {
    const receipts = await master.commands([message('one'), message('two')])
    expect(receipts.map((receipt) => receipt.status)).toEqual(['delivered', 'delivered'])
    const [told] = await master.text('<orc-command name="send_message" to="Worker">three</orc-command>')
    expect(told).toMatchObject({ status: 'delivered' })
    expect(await contents()).toEqual(['one', 'two', 'three'])
  })

  it('is retried when its answer is lost, and runs once (C25)', async () => {
    const lossy = losing(3)
    const client = createClient({ url: service.url, token: service.tokens.master, fetch: lossy })
    expect(await client.command(message('once'))).toMatchObject({ status: 'delivered', message_id: 'msg_1' })
    expect(await contents()).toEqual(['once'])
    const keys = lossy.sent.map((one) => one.headers['idempotency-key'])
    expect(keys).toHaveLength(4)
    expect(new Set(keys).size).toBe(1)
  })

  it('is retried a limited number of times', async () => {
    const lossy = losing(99)
    const client = createClient({ url: service.url, token: service.tokens.master, fetch: lossy, retries: 1 })
    await expect(client.command(message('x'))).rejects.toMatchObject({ code: 'SERVICE_UNREACHABLE' })
    expect(lossy.sent).toHaveLength(2)
  })

  it('accepts an idempotency key from the caller', async () => {
    const options = { idempotencyKey: 'mine' }
    expect(await master.command(message('x'), options)).toEqual(await master.command(message('x'), options))
    expect(await contents()).toEqual(['x'])
  })

  it('stops when its signal aborts', async () => {
    const controller = new AbortController()
    controller.abort(new Error('enough'))
    await expect(master.command(message('x'), { signal: controller.signal })).rejects.toThrow('enough')
  })
})

describe('the other methods of the client', () => {
  it('reach every route', async () => {
    await master.command(message('hello'))
    await createClient({ url: service.url, token: service.tokens.other }).command(message('hi', 'Master'))
    expect(await operator.health()).toEqual({ status: 'ok' })
    expect((await operator.agents()).agents).toHaveLength(3)
    expect((await operator.commandTypes()).commands.length).toBeGreaterThan(5)
    expect((await operator.messages({ agent: 'Worker', limit: 5 })).messages).toHaveLength(1)
    expect((await operator.message('msg_1')).steps).toHaveLength(1)
    expect((await operator.mailbox({ agent: 'Worker', filter: 'all' })).messages[0]!.content).toBe('hello')
    expect((await operator.deliveries()).deliveries).toEqual([{ agent: 'Worker', state: 'queued', count: 1 }])
    expect((await operator.next({ agent: 'Worker', wait: 0 })).messages).toHaveLength(1)
    expect(await operator.acknowledge(['msg_1'], 'Worker')).toMatchObject({ status: 'ok' })
    expect((await operator.humanRequests()).requests).toHaveLength(1)
    expect((await operator.decide('req_1', { decision: 'reject' })).request.state).toBe('rejected')
    expect(await operator.verifyAudit()).toMatchObject({ ok: true })
    expect((await operator.state()).version).toBe('1.2.3')
    expect((await operator.prompt('Worker')).prompt).toContain('You are Worker')
    expect((await operator.explain({ from: 'Worker', to: 'Other' })).decision.verdict).toBe('deny')
    const minted = await operator.mintToken('Worker')
    expect((await operator.tokens()).tokens.map((one) => one.id)).toContain(minted.id)
    expect(await operator.revokeTokens(minted.id)).toEqual({ revoked: 1 })
    expect(await operator.metrics()).toContain('orchub_commands_total')
    expect((await operator.openapi()).openapi).toBe('3.1.0')
  })

  it('read the audit entry by entry', async () => {
    await master.commands(Array.from({ length: 300 }, (_, index) => message(`number ${index}`)))
    const texts: string[] = []
    for await (const entry of operator.audit({ type: 'message' })) texts.push(entry.text)
    expect(texts).toEqual(Array.from({ length: 300 }, (_, index) => `number ${index}`))
    for await (const entry of operator.audit({ type: 'message', limit: 1 }))
      expect(entry.text).toBe('number 299')
  })

  it('never put the token into a URL', async () => {
    const lossy = losing(0)
    const client = createClient({ url: service.url, token: service.tokens.operator, fetch: lossy })
    await client.agents()
    await client.messages({ agent: 'Worker' })
    expect(lossy.sent.map((one) => one.url).join()).not.toContain(service.tokens.operator)
  })
})

const attempts = (client: Client): (() => Promise<unknown>)[] => [
  () => client.agents(),
  () => client.command(message('x')),
  () => client.events().next(),
]

describe('an error of the client', () => {
  it('carries code, message, hint and status', async () => {
    const wrong = createClient({ url: service.url, token: 'nonsense' })
    for (const attempt of [
      () => wrong.agents(),
      () => wrong.command(message('x')),
      () => wrong.audit().next(),
    ]) {
      const error = await attempt().then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
      expect(error).toBeInstanceOf(ClientError)
      expect(error).toMatchObject({
        code: 'UNAUTHENTICATED',
        status: 401,
        hint: expect.stringContaining('Bearer'),
      })
    }
    await expect(master.tokens()).rejects.toMatchObject({ code: 'FORBIDDEN', status: 403 })
    await expect(operator.message('msg_9')).rejects.toMatchObject({ code: 'NOT_FOUND', status: 404 })
  })

  it('says that the service does not answer, and what to do', async () => {
    await service.http.close()
    const client = createClient({ url: service.url, token: 'x', retries: 0 })
    for (const attempt of attempts(client)) {
      await expect(attempt()).rejects.toMatchObject({
        code: 'SERVICE_UNREACHABLE',
        status: undefined,
        message: expect.stringContaining(service.url),
        hint: expect.stringContaining('orc up'),
      })
    }
  })

  it('says that something other than Orchub answers', async () => {
    const other = createServer((_, answer) => answer.writeHead(404).end('<h1>Not here</h1>')).listen(
      0,
      '127.0.0.1',
    )
    await new Promise((resolve) => other.once('listening', resolve))
    const { port } = other.address() as { port: number }
    const client = createClient({ url: `http://127.0.0.1:${port}`, token: 'x', retries: 0 })
    for (const attempt of attempts(client)) {
      await expect(attempt()).rejects.toMatchObject({ code: 'SERVICE_UNREACHABLE', status: 404 })
    }
    other.close()
  })

  it('is thrown at once for a Unix socket, which needs its own fetch', async () => {
    expect(() => createClient({ url: 'unix:/tmp/orc.sock', token: 'x' })).toThrow(/Unix socket/)
    const asked: string[] = []
    const client = createClient({
      url: 'unix:/tmp/orc.sock',
      token: 'x',
      fetch: async (url) => {
        asked.push(url)
        return { status: 200, body: null, text: async () => '{"status":"ok"}' }
      },
    })
    await client.health()
    expect(asked).toEqual(['http://localhost/healthz'])
  })
})
