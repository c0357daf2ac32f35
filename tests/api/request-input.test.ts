import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openTestService, type TestService } from '../harness/service.ts'

let service: TestService
beforeAll(async () => {
  service = await openTestService()
})
afterAll(() => service.close())

const MIB = 1024 * 1024

function head(lines: string[], path = '/api/v1/commands'): string {
  return [
    `POST ${path} HTTP/1.1`,
    `Host: ${service.host}`,
    `Authorization: Bearer ${service.tokens.operator}`,
    'Content-Type: application/json',
    ...lines,
    '',
    '',
  ].join('\r\n')
}

/** Sends the head, then chunks until there is an answer; returns the answer and the number of bytes sent. */
function pour(first: string, chunk: Buffer): Promise<{ answer: string; sent: number }> {
  return new Promise((resolve) => {
    const socket: Socket = connect(service.port, '127.0.0.1')
    let answer = ''
    let sent = 0
    const more = () => {
      while (answer === '' && !socket.destroyed && socket.write(chunk)) sent += chunk.length
    }
    socket.on('connect', () => {
      socket.write(first)
      more()
    })
    socket.on('drain', more)
    socket.on('data', (data) => (answer += data))
    socket.on('error', () => {})
    socket.on('close', () => resolve({ answer, sent }))
    socket.on('end', () => socket.destroy())
  })
}

const chunked = (bytes: Buffer) =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])

describe('the limit of a body', () => {
  it('refuses a larger Content-Length at once, without reading the body', async () => {
    const answer = await service.raw(head([`Content-Length: ${16 * MIB + 1}`]))
    expect(answer).toMatch(/^HTTP\/1.1 413/)
    expect(answer).toContain('TOO_LARGE')
    expect(answer.toLowerCase()).toContain('connection: close')
  })

  it('stops an endless array while reading it, and keeps no more than the limit in memory', async () => {
    const before = process.memoryUsage().rss
    const { answer, sent } = await pour(
      head(['Transfer-Encoding: chunked']),
      chunked(Buffer.alloc(64 * 1024, '[')),
    )
    expect(answer).toMatch(/^HTTP\/1.1 413/)
    expect(sent).toBeLessThan(80 * MIB)
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * MIB)
    expect((await service.get('/healthz')).status).toBe(200)
  })

  it('is one MiB for a lone object, in chunks and with a length', async () => {
    const object = Buffer.from(`{"type":"list_agents","x":"${'a'.repeat(MIB)}"}`)
    const withLength = await service.call('POST', '/api/v1/commands', { body: object.toString() })
    expect([withLength.status, withLength.json.code]).toEqual([413, 'TOO_LARGE'])
    const { answer } = await pour(
      `${head(['Transfer-Encoding: chunked'])}${chunked(Buffer.from('  {"a":"'))}`,
      chunked(Buffer.alloc(64 * 1024, 'a')),
    )
    expect(answer).toMatch(/^HTTP\/1.1 413/)
    const small = await service.call('POST', '/api/v1/commands', {
      body: `{"type":"list_agents","x":"${'a'.repeat(MIB - 100)}"}`,
    })
    expect(small.status).toBe(200)
  })

  it('is sixteen MiB for an array', async () => {
    const array = `[{"type":"list_agents"}${' '.repeat(2 * MIB)}]`
    expect((await service.call('POST', '/api/v1/commands', { body: array })).status).toBe(200)
  })

  it('is one MiB for a text', async () => {
    expect((await service.text(service.tokens.master, 'a'.repeat(MIB))).status).toBe(200)
    expect((await service.text(service.tokens.master, 'a'.repeat(MIB + 1))).status).toBe(413)
  })

  it('is 64 KiB elsewhere', async () => {
    const reply = await service.call('POST', '/api/v1/tokens', { body: { agent: 'a'.repeat(64 * 1024) } })
    expect([reply.status, reply.json.code]).toEqual([413, 'TOO_LARGE'])
  })

  it('does not matter without a token: the body is not read', async () => {
    const first = head(['Transfer-Encoding: chunked']).replace(/Authorization.*\r\n/, '')
    const { answer, sent } = await pour(first, chunked(Buffer.alloc(64 * 1024, 'a')))
    expect(answer).toMatch(/^HTTP\/1.1 401/)
    expect(sent).toBeLessThan(80 * MIB)
  })
})

describe('a body', () => {
  it('that is compressed is refused', async () => {
    for (const encoding of ['gzip', 'br', 'deflate', 'zstd', 'gzip, identity']) {
      const reply = await service.call('POST', '/api/v1/commands', {
        body: 'x',
        headers: { 'content-encoding': encoding },
      })
      expect([reply.status, reply.json.code], encoding).toEqual([400, 'INVALID_REQUEST'])
    }
  })

  it('is requested only if it will be read', async () => {
    const refused = await service.raw(head([`Content-Length: ${17 * MIB}`, 'Expect: 100-continue']))
    expect(refused).toMatch(/^HTTP\/1.1 413/)
    const body = '{"type":"list_agents"}'
    const taken = await new Promise<string>((resolve) => {
      const socket = connect(service.port, '127.0.0.1')
      let text = ''
      socket.write(head([`Content-Length: ${body.length}`, 'Expect: 100-continue', 'Connection: close']))
      socket.on('data', (data) => {
        text += data
        if (text === 'HTTP/1.1 100 Continue\r\n\r\n') socket.write(body)
      })
      socket.on('close', () => resolve(text))
    })
    expect(taken).toContain('HTTP/1.1 200 OK')
  })

  it('that is cut off has no effect', async () => {
    const before = service.entries.length
    const socket = connect(service.port, '127.0.0.1')
    socket.write(`${head(['Content-Length: 1000'])}{"type":"send_message","to":"Worker","content":"x"}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
    socket.destroy()
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(service.entries).toHaveLength(before)
    expect((await service.get('/healthz')).status).toBe(200)
  })

  it('that arrives byte by byte is read', async () => {
    const body = '{"type":"list_agents"}'
    const answer = await new Promise<string>((resolve) => {
      const socket = connect({ port: service.port, host: '127.0.0.1', noDelay: true })
      let text = ''
      socket.on('data', (data) => (text += data))
      socket.on('close', () => resolve(text))
      const all = head([`Content-Length: ${body.length}`, 'Connection: close']) + body
      const next = (index: number) => {
        if (index < all.length) socket.write(all[index]!, () => next(index + 1))
      }
      next(0)
    })
    expect(answer).toMatch(/^HTTP\/1.1 200/)
  })

  it('of a route other than commands must be JSON that matches its schema', async () => {
    const post = (body: unknown, headers = {}) => service.call('POST', '/api/v1/tokens', { body, headers })
    const broken = await post('{"agent": "Worker",}')
    expect(broken.status).toBe(400)
    expect(broken.json.message).toMatch(/^The body is not valid JSON: .*line 1 column 20/)
    expect((await post('')).json.hint).toContain('The body is empty')
    expect((await post({ agent: 7 })).json.message).toContain('agent')
    expect((await post([])).status).toBe(400)
    expect((await post({ agent: 'Nobody' })).status).toBe(404)
    expect((await post({ agent: 'Worker' }, { 'content-type': 'text/plain' })).status).toBe(400)
  })

  it('can follow another one on the same connection', async () => {
    const body = '{"type":"list_agents"}'
    const one = head([`Content-Length: ${body.length}`]) + body
    const last = head([`Content-Length: ${body.length}`, 'Connection: close']) + body
    const answer = await service.raw(one + one + last)
    expect(answer.match(/HTTP\/1.1 200 OK/g)).toHaveLength(3)
  })
})
