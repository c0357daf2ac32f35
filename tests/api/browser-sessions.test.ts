import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openTestService, type TestService } from '../harness/service.ts'

let service: TestService
let folder: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'orchub-pages-'))
  await mkdir(join(folder, 'assets'))
  writeFileSync(
    join(folder, 'index.html'),
    '<!doctype html><meta property="csp-nonce" nonce="__ORC_NONCE__">',
  )
  writeFileSync(join(folder, 'assets/app-1.js'), 'export {}')
  writeFileSync(join(folder, 'secret.txt'), 'not among the pages')
  service = await openTestService({ people: { vera: { role: 'viewer' } } }, { service: { pages: folder } })
})
afterAll(async () => {
  await service.close()
  rmSync(folder, { recursive: true, force: true })
})

const post = (path: string, body: object, headers: Record<string, string> = {}, token?: string) =>
  service.call('POST', path, { token, body, headers })

async function code(token = service.tokens.operator): Promise<string> {
  const { json } = await post('/api/v1/logins', {}, {}, token)
  return json.path.split('/').at(-1)
}

/** The two halves, as a browser would send them. */
async function signIn(token?: string) {
  const reply = await post('/api/v1/sessions', { code: await code(token) })
  const cookie = reply.headers['set-cookie']![0]!.split(';')[0]!
  return { reply, both: { cookie, 'x-orc-session': reply.json.half as string } }
}

const me = (headers: Record<string, string>) =>
  service.call('GET', '/api/v1/me', { token: undefined, headers })

describe('a browser session', () => {
  it('is opened by a link that works once, and has the name and role of its creator', async () => {
    const once = await code()
    expect((await post('/api/v1/sessions', { code: once })).json).toMatchObject({
      name: 'operator',
      role: 'operator',
    })
    const again = await post('/api/v1/sessions', { code: once })
    expect([again.status, again.headers['set-cookie']]).toEqual([401, undefined])
  })

  it('uses a cookie that no script can read and no other site can send', async () => {
    const { reply } = await signIn()
    expect(reply.headers['set-cookie']![0]).toMatch(
      /^orc_session_\d+=\S+; Path=\/; Max-Age=604800; HttpOnly; SameSite=Strict$/,
    )
  })

  it('needs both halves: another port of this host gets only the cookie, a script only the other half', async () => {
    const { both } = await signIn()
    expect((await me(both)).json).toMatchObject({ name: 'operator', kind: 'operator', role: 'operator' })
    expect((await me({ cookie: both.cookie })).status).toBe(401)
    expect((await me({ 'x-orc-session': both['x-orc-session'] })).status).toBe(401)
    const { both: other } = await signIn()
    expect((await me({ ...both, cookie: other.cookie })).status).toBe(401)
    expect((await me({ ...both, cookie: `${both.cookie}; ${both.cookie}` })).status).toBe(401)
  })

  it('is refused to pages of other origins, whatever they send (S2.16)', async () => {
    const { both } = await signIn()
    expect((await me({ ...both, origin: 'https://evil.example' })).json.code).toBe('FORBIDDEN_HOST')
    expect((await me({ ...both, origin: `http://127.0.0.1:${service.port + 1}` })).json.code).toBe(
      'FORBIDDEN_HOST',
    )
  })

  it('is not a token: its joined halves are, and a split token is not a session', async () => {
    const half = service.tokens.operator
    const split = {
      cookie: `orc_session_${service.port}=${half.slice(0, 27)}`,
      'x-orc-session': half.slice(27),
    }
    expect((await me(split)).status).toBe(401)
  })

  it('expires after seven days', async () => {
    const { both } = await signIn()
    await service.clock.advance(7 * 24 * 3600_000 - 1000)
    expect((await me(both)).status).toBe(200)
    await service.clock.advance(1000)
    expect((await me(both)).json).toMatchObject({
      code: 'UNAUTHENTICATED',
      message: 'This browser session has ended',
    })
    expect(
      (await service.get('/api/v1/tokens')).json.tokens.some(
        (one: { expires_at?: string }) => one.expires_at,
      ),
    ).toBe(false)
  })

  it('ends at once when its token is revoked or the browser signs out', async () => {
    const { both } = await signIn()
    const { tokens } = (await service.get('/api/v1/tokens')).json
    const mine = tokens.findLast((one: { expires_at?: string }) => one.expires_at !== undefined)
    await service.call('DELETE', `/api/v1/tokens/${mine.id}`)
    expect((await me(both)).status).toBe(401)
    const { both: next } = await signIn()
    const out = await service.call('DELETE', '/api/v1/session', { token: undefined, headers: next })
    expect([out.json.status, out.headers['set-cookie']![0]]).toEqual([
      'signed_out',
      expect.stringContaining('Max-Age=0'),
    ])
    expect((await me(next)).status).toBe(401)
  })

  it('cannot create tokens or links, even with a hijacked page', async () => {
    const { both } = await signIn()
    for (const [path, body] of [
      ['/api/v1/tokens', { agent: 'Worker' }],
      ['/api/v1/logins', {}],
    ] as const) {
      expect((await post(path, body, both)).status).toBe(403)
    }
    const said = { type: 'create_token', agent: 'operator' }
    const { json } = await post('/api/v1/commands', said, both)
    expect(json).toMatchObject({ code: 'FORBIDDEN', message: expect.stringContaining('browser session') })
    const call = { name: 'create_token', arguments: { agent: 'operator' } }
    const { text } = await post('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call }, both)
    expect(text).not.toContain('orct_')
  })

  it('has the rights of its person: a viewer can change nothing', async () => {
    const { token } = await service.tokenBook.mintForPerson('vera')
    const { both, reply } = await signIn(token)
    expect(reply.json).toMatchObject({ name: 'vera', role: 'viewer' })
    expect((await post('/api/v1/halt', {}, both)).status).toBe(403)
  })

  it('is not available to agents', async () => {
    expect((await post('/api/v1/logins', {}, {}, service.tokens.worker)).status).toBe(403)
  })

  it('is not opened by a link of a token that was revoked since', async () => {
    const { id, token } = await service.tokenBook.mintForPerson('vera')
    const late = await code(token)
    await service.tokenBook.revoke(id)
    expect((await post('/api/v1/sessions', { code: late })).status).toBe(401)
  })
})

describe('the files of the control room', () => {
  const get = (path: string) => service.call('GET', path, { token: undefined })

  it('come with a policy that allows nothing inline and nothing from elsewhere', async () => {
    const { headers, text } = await get('/')
    const policy = String(headers['content-security-policy'])
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("script-src 'self';")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toContain('unsafe')
    const nonce = /nonce="([^"]+)"/.exec(text)![1]!
    expect(policy).toContain(`'nonce-${nonce}'`)
    expect((await get('/')).text).not.toContain(nonce)
  })

  it('are served to anyone, and nothing else in or above that folder is', async () => {
    expect((await get('/assets/app-1.js')).text).toBe('export {}')
    for (const path of [
      '/secret.txt',
      '/assets/../secret.txt',
      '/assets/%2e%2e/secret.txt',
      '/assets/..',
      '/assets/',
    ]) {
      expect((await get(path)).status, path).toBe(401)
    }
    for (const name of ['x.js', 'a'.repeat(5000)]) {
      expect((await get(`/assets/${name}`)).status).toBe(404)
    }
  })

  it('are subject to the Host check like everything else', async () => {
    const reply = await service.call('GET', '/', { token: undefined, headers: { host: 'evil.example' } })
    expect(reply.json.code).toBe('FORBIDDEN_HOST')
  })
})
