import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ROUTES, type Route } from '../../src/api/contract.ts'
import { openTestService, type TestService } from '../harness/service.ts'

let service: TestService
beforeAll(async () => {
  service = await openTestService({}, { service: { allowedHosts: ['orc.example', 'proxy.example:8443'] } })
})
afterAll(() => service.close())

const routes = Object.values<Route>(ROUTES).map((route) => ({
  ...route,
  method: route.method.toUpperCase(),
  url: route.path.replace(/\{\w+\}/g, 'msg_1'),
}))
const named = routes.map((route) => [`${route.method} ${route.path}`, route] as const)
const guarded = named.filter(([, route]) => route.who !== 'anyone')

describe('every route but /healthz', () => {
  it.each(guarded)('refuses %s without a token', async (_, { method, url }) => {
    const reply = await service.call(method, url, { token: undefined })
    expect(reply.status).toBe(401)
    expect(reply.headers['www-authenticate']).toMatch(/^Bearer/)
    expect(reply.json).toMatchObject({ status: 'error', code: 'UNAUTHENTICATED' })
  })

  it.each(guarded)(
    'refuses %s with a wrong or revoked token, or with one in the URL only',
    async (_, route) => {
      const { id, token } = await service.tokenBook.mint('Worker')
      await service.tokenBook.revoke(id)
      for (const bad of [`orct_${'A'.repeat(43)}`, token])
        expect((await service.call(route.method, route.url, { token: bad })).status).toBe(401)
      const path = `${route.url}?token=${service.tokens.operator}&access_token=${service.tokens.operator}`
      expect((await service.call(route.method, path, { token: undefined })).status).toBe(401)
    },
  )
})

describe('every route', () => {
  it.each(named)('refuses %s under a foreign Host, before it looks at anything else', async (_, route) => {
    for (const host of ['evil.example', `evil.example:${service.port}`, '127.0.0.1:1', 'localhost']) {
      const reply = await service.call(route.method, route.url, { headers: { host } })
      expect([reply.status, reply.json.code]).toEqual([403, 'FORBIDDEN_HOST'])
    }
  })

  it.each(named)('refuses %s from a foreign Origin', async (_, route) => {
    for (const origin of [
      'https://evil.example',
      'null',
      'http://localhost:1',
      `ftp://127.0.0.1:${service.port}`,
    ]) {
      const reply = await service.call(route.method, route.url, { headers: { origin } })
      expect([reply.status, reply.json.code]).toEqual([403, 'FORBIDDEN_HOST'])
      expect(Object.keys(reply.headers).filter((name) => name.startsWith('access-control'))).toEqual([])
    }
  })

  it.each(named)('refuses OPTIONS and HEAD on %s', async (_, { url }) => {
    for (const method of ['OPTIONS', 'HEAD']) {
      const headers = { origin: `http://${service.host}`, 'access-control-request-method': 'POST' }
      const reply = await service.call(method, url, { token: undefined, headers })
      expect(reply.status).toBe(405)
      expect(Object.keys(reply.headers).filter((name) => name.startsWith('access-control'))).toEqual([])
    }
  })

  it.each(named.filter(([, route]) => route.who === 'operator'))(
    'refuses %s to an agent, and writes that down',
    async (_, { method, url, path }) => {
      const before = service.entries.length
      const reply = await service.call(method, url, { token: service.tokens.worker })
      expect([reply.status, reply.json.code]).toEqual([403, 'FORBIDDEN'])
      expect(service.entries.slice(before)).toEqual([
        expect.objectContaining({ type: 'security.forbidden', class: 'private', actor: 'Worker' }),
      ])
      expect(service.entries.at(-1)!.text).toContain(path)
    },
  )
})

describe('authentication', () => {
  it('answers /healthz to anyone and reveals nothing else', async () => {
    const reply = await service.call('GET', '/healthz', { token: undefined })
    expect([reply.status, reply.json]).toEqual([200, { status: 'ok' }])
  })

  it('reports at /healthz that the disk failed, but not where it is', async () => {
    const { showHealth } = await import('../../src/api/routes.ts')
    const store = {
      throwIfFailed() {
        throw new Error('/home/me/.orc/store.db failed')
      },
    }
    const broken = { engine: { store, halt: { current: () => undefined } } } as never
    const call = async () => await showHealth(broken, {} as never)
    await expect(call).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.not.stringContaining('/'),
    })
  })

  it('accepts the loopback names with the port, and the hosts that orc.yaml allows', async () => {
    const hosts = [
      `localhost:${service.port}`,
      `LOCALHOST:${service.port}`,
      `[::1]:${service.port}`,
      service.host,
      'orc.example',
      'orc.example:99',
      'proxy.example:8443',
    ]
    for (const host of hosts) {
      expect((await service.call('GET', '/healthz', { headers: { host } })).status, host).toBe(200)
    }
    for (const host of ['proxy.example', 'orc.example.evil', 'orc.example:99:99', 'a@orc.example']) {
      expect((await service.call('GET', '/healthz', { headers: { host } })).status, host).toBe(403)
    }
  })

  it('accepts its own Origin', async () => {
    for (const origin of [
      `http://${service.host}`,
      `http://localhost:${service.port}`,
      'https://orc.example',
    ]) {
      expect((await service.call('GET', '/api/v1/agents', { headers: { origin } })).status, origin).toBe(200)
    }
  })

  it('does not reveal routes to callers without a token', async () => {
    for (const path of ['/api/v1/nothing', '/api/v1', '//', '/api/v1/agents/']) {
      expect((await service.call('GET', path, { token: undefined })).status, path).toBe(401)
      expect([404, 405], path).toContain((await service.call('GET', path)).status)
    }
  })

  it('says which methods a route accepts', async () => {
    const reply = await service.call('DELETE', '/api/v1/commands')
    expect([reply.status, reply.json.code]).toEqual([405, 'METHOD_NOT_ALLOWED'])
    expect(reply.headers.allow).toBe('POST, GET')
  })

  it('accepts the scheme Bearer in any case, and no other', async () => {
    const { operator } = service.tokens
    const status = async (authorization: string) =>
      (await service.call('GET', '/api/v1/agents', { token: undefined, headers: { authorization } })).status
    expect(await status(`bearer ${operator}`)).toBe(200)
    for (const header of [
      operator,
      `Basic ${operator}`,
      `Bearer ${operator} x`,
      'Bearer',
      `Bearer${operator}`,
    ]) {
      expect(await status(header), header).toBe(401)
    }
  })

  it.each([
    ['no Host', 'GET /healthz HTTP/1.1\r\n\r\n', 403],
    ['an empty Host', 'GET /healthz HTTP/1.1\r\nHost:\r\n\r\n', 403],
    ['no Host in HTTP/1.0', 'GET /healthz HTTP/1.0\r\n\r\n', 403],
    ['two Hosts', 'GET /healthz HTTP/1.1\r\nHost: HOST\r\nhost: evil.example\r\n\r\n', 400],
    ['two equal Hosts', 'GET /healthz HTTP/1.1\r\nHost: HOST\r\nHost: HOST\r\n\r\n', 400],
    [
      'two Authorizations',
      'GET /api/v1/agents HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer x\r\nAuthorization: Bearer TOKEN\r\n\r\n',
      400,
    ],
    [
      'two Origins',
      'GET /healthz HTTP/1.1\r\nHost: HOST\r\nOrigin: http://HOST\r\nOrigin: null\r\n\r\n',
      400,
    ],
    ['a whole URL', 'GET http://evil.example/healthz HTTP/1.1\r\nHost: HOST\r\n\r\n', 400],
    ['a backslash', 'GET /\\\\evil.example/healthz HTTP/1.1\r\nHost: HOST\r\n\r\n', 400],
    ['an asterisk', 'OPTIONS * HTTP/1.1\r\nHost: HOST\r\n\r\n', 400],
    ['an unknown method', 'PATCH /healthz HTTP/1.1\r\nHost: HOST\r\n\r\n', 405],
    ['TRACE', 'TRACE /healthz HTTP/1.1\r\nHost: HOST\r\n\r\n', 405],
    ['no HTTP', 'hello\r\n\r\n', 400],
    ['a bad header', 'GET /healthz HTTP/1.1\r\nHost: HOST\r\nbad header\r\n\r\n', 400],
    [
      'two lengths',
      'POST /api/v1/commands HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
      400,
    ],
    [
      'a length and chunks',
      'POST /api/v1/commands HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      400,
    ],
    ['headers without end', `GET /healthz HTTP/1.1\r\nHost: HOST\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`, 413],
  ])('refuses a request with %s', async (_, bytes, status) => {
    const sent = bytes.replaceAll('HOST', service.host).replace('TOKEN', service.tokens.operator)
    const text = await service.raw(sent.replace('\r\n', '\r\nConnection: close\r\n'))
    expect(Number(text.split(' ')[1])).toBe(status)
    expect(JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4))).toMatchObject({ status: 'error' })
    expect((await service.get('/healthz')).status).toBe(200)
  })

  it.each([
    ['/healthz', 200],
    ['/api/v1/agents', 200],
    ['/api/v1/mailbox?agent=Worker', 200],
    ['/api/v1/nothing', 404],
    ['/metrics', 200],
  ])('marks its response to %s as data that is neither cached nor embedded', async (path, status) => {
    const { status: got, headers } = await service.get(path)
    expect(got).toBe(status)
    expect(headers['x-content-type-options']).toBe('nosniff')
    expect(headers['cache-control']).toBe('no-store')
    expect(headers['content-security-policy']).toContain("default-src 'none'")
    expect(headers.server ?? headers['x-powered-by']).toBeUndefined()
  })

  it('warns of a token in a URL', async () => {
    const reply = await service.get(`/api/v1/agents?token=${service.tokens.worker}`)
    expect(reply.status).toBe(400)
    expect(reply.json.hint).toContain('Never put a token into a URL')
    expect(reply.text).not.toContain(service.tokens.worker)
  })

  it.each([
    ['/api/v1/mailbox?agnet=Worker', 'agnet'],
    ['/api/v1/mailbox?agent=Worker&agent=Other', 'twice'],
    ['/api/v1/mailbox?agent=Worker&filter=some', 'filter'],
    ['/api/v1/mailbox?agent=Worker&limit=0', 'limit'],
    ['/api/v1/mailbox?agent=Worker&limit=many', 'limit'],
    ['/api/v1/mailbox?agent=Worker&after=12', 'msg_12'],
    ['/api/v1/messages?since=yesterday', 'yesterday'],
    ['/api/v1/messages?limit=100000', 'limit'],
    ['/api/v1/audit?class=secret', 'class'],
    ['/api/v1/events?after=-1', 'after'],
    ['/api/v1/rules/explain?from=Master', 'to'],
    ['/api/v1/rules/explain?from=Master&to=Worker&action=fly', 'action'],
    ['/api/v1/deliveries/next?agent=Worker&wait=forever', 'wait'],
    ['/api/v1/mailbox?__proto__=1', '__proto__'],
  ])('refuses %s and explains why', async (path, word) => {
    const reply = await service.get(path)
    expect([reply.status, reply.json.code]).toEqual([400, 'INVALID_REQUEST'])
    expect(reply.text).toContain(word)
  })

  it('refuses everything to an agent that is no longer in the team', async () => {
    const own = await openTestService()
    try {
      const { config } = own.team()
      const agents = config.agents.filter((agent) => agent.name !== 'Other')
      await own.reload({ ...config, agents })
      for (const path of ['/api/v1/agents', '/api/v1/mailbox', '/api/v1/events', '/openapi.json']) {
        expect((await own.get(path, own.tokens.other)).status, path).toBe(403)
      }
      expect((await own.command(own.tokens.other, { type: 'list_agents' })).json.code).toBe('FORBIDDEN')
      expect((await own.get('/api/v1/agents', own.tokens.worker)).status).toBe(200)
    } finally {
      await own.close()
    }
  })
})
