import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openTestService, type TestService } from '../harness/service.ts'

let service: TestService
beforeAll(async () => {
  service = await openTestService({
    rules: {
      preset: 'mesh',
      forbid: [{ from: 'Worker', to: 'Other', reason: 'Worker answers to Master' }],
      ask: [{ from: 'Other', to: 'Master' }],
    },
  })
})
afterAll(() => service.close())

const message = (more: Record<string, unknown> = {}) => ({
  type: 'send_message',
  to: 'Worker',
  content: 'hello',
  ...more,
})

async function contentsOf(agent: string): Promise<string[]> {
  const { json } = await service.get(`/api/v1/mailbox?agent=${agent}&filter=all`)
  return json.messages.map((mail: { content: string }) => mail.content)
}

describe('POST /api/v1/commands with one command', () => {
  it('answers with the receipt in the words of the seeds (S1.13, C27)', async () => {
    const { status, json, headers } = await service.command(service.tokens.master, message())
    expect(status).toBe(200)
    expect(json).toEqual({
      status: 'delivered',
      message_id: expect.stringMatching(/^msg_\d+$/),
      delivery: 'queued',
      to: 'Worker',
    })
    expect(headers['content-type']).toBe('application/json')
  })

  it('finds the recipient whatever the case (S0.10)', async () => {
    const { json } = await service.command(service.tokens.master, message({ to: 'wORKER' }))
    expect(json).toMatchObject({ status: 'delivered', to: 'Worker' })
  })

  it('names the valid agents when the recipient is unknown (S0.15, S0.18)', async () => {
    const { status, json } = await service.command(service.tokens.master, message({ to: 'Nobody' }))
    expect(status).toBe(404)
    expect(json).toMatchObject({ code: 'UNKNOWN_RECIPIENT', message: 'Unknown recipient: Nobody' })
    expect(json.hint).toContain('Master, Worker, Other')
  })

  it('answers 403 with the reason to a blocked sender (S1.12)', async () => {
    const { status, json } = await service.command(service.tokens.worker, message({ to: 'Other' }))
    expect([status, json.status]).toEqual([403, 'blocked'])
    expect(json.reason).toContain('Worker answers to Master')
    expect(service.entries.at(-1)).toMatchObject({
      type: 'command.blocked',
      data: { rule: 'rules.forbid[0]' },
    })
  })

  it('answers 202 when a person must be asked first', async () => {
    const { status, json } = await service.command(service.tokens.other, message({ to: 'Master' }))
    expect([status, json.status]).toEqual([202, 'held'])
    expect(json.request_id).toMatch(/^req_\d+$/)
  })

  it('says which type is unknown (S1.11)', async () => {
    const { status, json } = await service.command(service.tokens.master, { type: 'fly' })
    expect([status, json.message]).toEqual([400, 'Unknown command type: fly'])
  })

  it('says which parameter is wrong', async () => {
    const asleep = { type: 'update_status', status: 'asleep' }
    const { status, json } = await service.command(service.tokens.master, asleep)
    expect([status, json.code]).toEqual([400, 'INVALID_COMMAND'])
    expect(json.message).toContain('status')
    expect(json.hint).toContain('idle, working, blocked, or completed')
  })

  it('names unused parameters (C5)', async () => {
    const { json } = await service.command(service.tokens.master, message({ agent_name: 'Worker' }))
    expect(json).toMatchObject({ status: 'delivered', ignored: ['agent_name'] })
  })
})

describe('the size of a message (C20)', () => {
  it.each([
    ['1 byte', 'x', 200],
    ['102,400 bytes', 'x'.repeat(102_400), 200],
    ['102,400 bytes in characters of two', 'é'.repeat(51_200), 200],
    ['102,400 bytes in characters of four', '🙂'.repeat(25_600), 200],
    ['102,401 bytes', 'x'.repeat(102_401), 413],
    ['102,401 bytes, one character of two among them', `${'x'.repeat(102_399)}é`, 413],
    ['102,402 bytes in characters of three', '語'.repeat(34_134), 413],
    ['0 bytes', '', 400],
  ])('%s', async (_, content, status) => {
    const before = (await contentsOf('Worker')).length
    const reply = await service.command(service.tokens.master, message({ content }))
    expect(reply.status).toBe(status)
    const after = await contentsOf('Worker')
    if (status === 200) expect(after.at(-1)).toBe(content)
    else expect(after.length).toBe(before)
    if (status === 413) expect(reply.json).toMatchObject({ status: 'error', code: 'TOO_LARGE' })
  })
})

describe('a forged sender (C3, S0.19)', () => {
  const to = 'Other'
  const json = (from: object) => (token: string) => service.command(token, message({ ...from, to }))
  const text = (written: string) => (token: string) => service.text(token, written)
  const children = '<from>Master</from><to>Other</to><content>x</content>'
  const forgeries: [string, (token: string) => Promise<{ json: unknown }>][] = [
    ['JSON', json({ from: 'Master' })],
    ['JSON, as From', json({ From: 'Master' })],
    ['JSON, as from_agent', json({ from_agent: 'Master' })],
    ['JSON, as a list', json({ from: ['Master'] })],
    ['an array', (token) => service.command(token, [message({ from: 'Master', to })])],
    ['modern XML', text('<orc-command name="send_message" from="Master" to="Other">x</orc-command>')],
    ['legacy XML', text(`<orc-command type="send_message">${children}</orc-command>`)],
    ['the JSON notation', text(JSON.stringify({ orc_command: message({ from: 'Master', to }) }))],
  ]
  it.each(forgeries)('in %s is refused and recorded, and has no effect', async (_, forge) => {
    const mail = (await contentsOf('Other')).length
    const before = service.entries.length
    const { json } = await forge(service.tokens.worker)
    expect([json].flat()).toEqual([expect.objectContaining({ status: 'error', code: 'SENDER_MISMATCH' })])
    expect(await contentsOf('Other')).toHaveLength(mail)
    expect(service.entries.slice(before)).toEqual([
      expect.objectContaining({ type: 'security.sender_mismatch', class: 'private', actor: 'Worker' }),
    ])
  })

  it('is accepted if only its case differs', async () => {
    const { json } = await service.command(service.tokens.worker, message({ from: 'WORKER', to: 'Master' }))
    expect(json.status).toBe('delivered')
    const { messages } = (await service.get('/api/v1/mailbox?agent=Master&filter=all')).json
    expect(messages.at(-1).from).toBe('Worker')
  })

  it('is accepted from the operator, who may speak for an agent under its rules', async () => {
    const allowed = await service.command(service.tokens.operator, message({ from: 'Master' }))
    expect(allowed.json.status).toBe('delivered')
    const blocked = await service.command(service.tokens.operator, message({ from: 'Worker', to: 'Other' }))
    expect(blocked.json.status).toBe('blocked')
  })
})

describe('POST /api/v1/commands with an array', () => {
  it('answers 200 with a receipt for each, in order, and keeps the order of the messages', async () => {
    const many = Array.from({ length: 300 }, (_, index) => message({ content: `in order ${index}` }))
    many[7] = message({ to: 'Nobody' })
    const { status, json } = await service.command(service.tokens.master, many)
    expect(status).toBe(200)
    expect(json).toHaveLength(300)
    expect(json[7]).toMatchObject({ status: 'error', code: 'UNKNOWN_RECIPIENT' })
    const stored = (await contentsOf('Worker')).filter((content) => content.startsWith('in order'))
    expect(stored).toEqual(many.flatMap(({ to, content }) => (to === 'Worker' ? [content] : [])))
  })

  it('answers an invalid command in its place', async () => {
    const { json } = await service.command(service.tokens.master, [1, null, [], {}, { type: 7 }, message()])
    const statuses = json.map((receipt: { status: string }) => receipt.status)
    expect(statuses).toEqual([...Array(5).fill('error'), 'delivered'])
  })

  it('takes an empty one, and refuses more than a thousand', async () => {
    expect((await service.command(service.tokens.master, [])).json).toEqual([])
    const { status, json } = await service.command(
      service.tokens.master,
      Array.from({ length: 1001 }, () => ({ type: 'list_agents' })),
    )
    expect([status, json.code]).toEqual([413, 'TOO_LARGE'])
  })
})

describe('POST /api/v1/commands with text/plain', () => {
  it('runs the commands in the text and says why the others do not run (S0.1, S0.23)', async () => {
    const text = [
      'I will tell Worker.',
      '<orc-command name="send_message" to="Worker" title="Hi">from a text</orc-command>',
      '```',
      '<orc-command name="send_message" to="Worker">quoted</orc-command>',
      '```',
      '<orc-command name="update_status" status=“idle”></orc-command>',
    ].join('\n')
    const { status, json } = await service.text(service.tokens.master, text)
    expect(status).toBe(200)
    expect(json).toHaveLength(3)
    expect(json[0]).toMatchObject({ status: 'delivered', to: 'Worker' })
    expect(json[1]).toMatchObject({ status: 'error', code: 'NOT_EXTRACTED' })
    expect(json[1].message).toMatch(/^IN_CODE_BLOCK: /)
    expect(json[2].message).toMatch(/^NON_ASCII_QUOTES: /)
    expect(await contentsOf('Worker')).toContain('from a text')
    expect(await contentsOf('Worker')).not.toContain('quoted')
  })

  it('answers an empty list when there is nothing in it', async () => {
    expect((await service.text(service.tokens.master, 'just words')).json).toEqual([])
    expect((await service.text(service.tokens.master, '')).json).toEqual([])
  })

  it('refuses a text with more than a thousand commands, and runs none', async () => {
    const before = service.entries.length
    const { status } = await service.text(
      service.tokens.master,
      '<orc-command name="update_status" status="idle"/>\n'.repeat(1001),
    )
    expect(status).toBe(413)
    expect(service.entries).toHaveLength(before)
  })
})

describe('the Idempotency-Key (C25)', () => {
  it('acts once and gives the same receipt again', async () => {
    const headers = { 'idempotency-key': 'once-1' }
    const content = 'only once'
    const first = await service.command(service.tokens.master, message({ content }), headers)
    const second = await service.command(service.tokens.master, message({ content }), headers)
    expect(second.json).toEqual(first.json)
    expect((await contentsOf('Worker')).filter((one) => one === content)).toHaveLength(1)
  })

  it('acts once for fifty of the same at the same time', async () => {
    const headers = { 'idempotency-key': 'once-50' }
    const replies = await Promise.all(
      Array.from({ length: 50 }, () =>
        service.command(service.tokens.master, message({ content: 'fifty' }), headers),
      ),
    )
    expect(new Set(replies.map((reply) => reply.json.message_id)).size).toBe(1)
    expect((await contentsOf('Worker')).filter((one) => one === 'fifty')).toHaveLength(1)
  })

  it('is a conflict with another command, and none for another speaker', async () => {
    const headers = { 'idempotency-key': 'shared' }
    await service.command(service.tokens.master, message(), headers)
    const conflict = await service.command(service.tokens.master, message({ content: 'other' }), headers)
    expect([conflict.status, conflict.json.code]).toEqual([409, 'IDEMPOTENCY_CONFLICT'])
    const other = await service.command(service.tokens.worker, message({ to: 'Master' }), headers)
    expect(other.json.status).toBe('delivered')
  })

  it('counts for each command of an array and of a text by its place', async () => {
    const headers = { 'idempotency-key': 'many' }
    const many = [message({ content: 'a-many' }), message({ content: 'a-many' })]
    const first = await service.command(service.tokens.master, many, headers)
    const second = await service.command(service.tokens.master, many, headers)
    expect(second.json).toEqual(first.json)
    expect((await contentsOf('Worker')).filter((one) => one === 'a-many')).toHaveLength(2)

    const text = '<orc-command name="send_message" to="Worker">t-many</orc-command>'
    await service.text(service.tokens.master, text, { 'idempotency-key': 'text' })
    await service.text(service.tokens.master, text, { 'idempotency-key': 'text' })
    expect((await contentsOf('Worker')).filter((one) => one === 't-many')).toHaveLength(1)
  })

  it.each([
    ['empty', ''],
    ['too long', 'k'.repeat(201)],
    ['with a space', 'a b'],
    ['not ASCII', 'k\u00e9y'],
  ])('is refused when it is %s', async (_, key) => {
    const reply = await service.command(service.tokens.master, message(), { 'idempotency-key': key })
    expect([reply.status, reply.json.code]).toEqual([400, 'INVALID_REQUEST'])
  })
})

describe('a malformed body', () => {
  it.each([
    ['', 'Unexpected end of JSON input'],
    ['{"type": "list_agents",}', '(line 1 column 24)'],
    ['{"type": list_agents}', `Unexpected token 'l'`],
    ['{"type":\n  "list_agents"\n  "x"}', '(line 3 column 3)'],
    ['[1, 2', '(line 1 column 6)'],
    ['{"type": "list_agents"} x', '(line 1 column 25)'],
  ])('%j is refused with its position', async (body, place) => {
    const reply = await service.command(service.tokens.master, body)
    expect([reply.status, reply.json.code]).toEqual([400, 'INVALID_REQUEST'])
    expect(reply.json.message).toContain(place)
  })

  it.each([['"text"'], ['null'], ['7'], ['true'], ['{}'], ['{"type": null}'], ['{"type": {"a": 1}}']])(
    '%s is not a command',
    async (body) => {
      const reply = await service.command(service.tokens.master, body)
      expect([reply.status, reply.json.code]).toEqual([400, 'INVALID_COMMAND'])
    },
  )

  it('is refused under any other content type', async () => {
    const types = ['application/xml', 'multipart/form-data; boundary=x', 'text/html', 'application/jsonp']
    for (const type of types) {
      const reply = await service.command(service.tokens.master, message(), { 'content-type': type })
      expect([reply.status, reply.json.code], type).toEqual([400, 'INVALID_REQUEST'])
      expect(reply.json.hint).toContain('application/json')
    }
    const reply = await service.command(service.tokens.master, message(), {
      'content-type': 'Application/JSON; charset=utf-8',
    })
    expect(reply.status).toBe(200)
  })

  it('is refused when it is not UTF-8, and accepted with a byte order mark', async () => {
    const ask = async (body: Buffer) => {
      const head = `POST /api/v1/commands HTTP/1.1\r\nHost: ${service.host}\r\nAuthorization: Bearer ${service.tokens.master}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`
      return await service.raw(Buffer.concat([Buffer.from(head), body]))
    }
    expect(await ask(Buffer.from([0x22, 0xff, 0x22]))).toMatch(/^HTTP\/1.1 400/)
    const marked = Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from('{"type":"list_agents"}')])
    expect(await ask(marked)).toMatch(/^HTTP\/1.1 200/)
  })

  it('pollutes no prototype', async () => {
    const body = `{"type":"list_agents","__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}`
    const { status, json } = await service.command(service.tokens.master, body)
    expect(status).toBe(200)
    expect(json.ignored).toEqual(['__proto__', 'constructor'])
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  })

  it('may be nested deeply without harm', async () => {
    const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`
    const { status } = await service.command(
      service.tokens.master,
      `{"type":"send_message","to":${deep},"content":"x"}`,
    )
    expect(status).toBe(400)
    expect((await service.get('/healthz')).status).toBe(200)
  })
})

describe('the rate (C18)', () => {
  it('answers 429 and says when to try again', async () => {
    const own = await openTestService({ limits: { rate: { per_minute: 30, burst: 10 } } })
    try {
      const replies = []
      for (let count = 0; count < 11; count++) replies.push(await own.command(own.tokens.master, message()))
      expect(replies.slice(0, 10).map((reply) => reply.status)).toEqual(Array(10).fill(200))
      const last = replies[10]!
      expect([last.status, last.json.code]).toEqual([429, 'RATE_LIMITED'])
      expect(last.json.retry_after_ms).toBe(2000)
      expect(last.headers['retry-after']).toBe('2')
      await own.clock.advance(2000)
      expect((await own.command(own.tokens.master, message())).status).toBe(200)
    } finally {
      await own.close()
    }
  })
})
