import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, describe, expect, it } from 'vitest'
import { openTestService, type TestService } from '../../harness/service.ts'

let service: TestService
afterEach(() => service.close())

const send = (from: string, to: string, content: string, more: Record<string, unknown> = {}) =>
  service.say(from, 'send_message', { to, content, ...more })

const contents = (reply: { json: { messages: { content: string }[] } }) =>
  reply.json.messages.map((mail) => mail.content)

describe('GET /api/v1/mailbox', () => {
  it('returns the messages in order and marks none as read (C1)', async () => {
    service = await openTestService()
    for (const content of ['one', 'two', 'three']) await send('Master', 'Worker', content)
    for (let look = 0; look < 2; look++) {
      const reply = await service.get('/api/v1/mailbox', service.tokens.worker)
      expect(reply.status).toBe(200)
      expect(contents(reply)).toEqual(['one', 'two', 'three'])
    }
    const { json } = await service.get('/api/v1/mailbox?agent=worker&filter=all')
    expect(json.messages[0]).toEqual({
      id: 'msg_1',
      from: 'Master',
      to: 'Worker',
      title: 'one',
      content: 'one',
      priority: 'normal',
      at: '2030-01-01T00:00:00.000Z',
      delivery: 'queued',
      attempts: 0,
      correlation_id: 'msg_1',
    })
  })

  it('filters unread, all and urgent, and returns a page after an id (S1.5)', async () => {
    service = await openTestService({
      agents: { Master: { permissions: { urgent: 'allow' } }, Worker: {}, Other: {} },
    })
    for (const content of ['one', 'two']) await send('Master', 'Worker', content)
    await send('Master', 'Worker', 'three', { priority: 'MEDIUM' })
    await send('Master', 'Worker', 'now', { priority: 'urgent' })
    await service.say('Worker', 'acknowledge', { ids: ['msg_1'] })
    const look = (query: string) => service.get(`/api/v1/mailbox?agent=Worker${query}`)
    expect(contents(await look('&filter=all'))).toEqual(['one', 'two', 'three', 'now'])
    expect(contents(await look(''))).toEqual(['two', 'three', 'now'])
    expect(contents(await look('&filter=urgent'))).toEqual(['now'])
    expect((await look('')).json.messages[1]).toMatchObject({ content: 'three', priority: 'normal' })
    expect(contents(await look('&filter=all&after=msg_1&limit=2'))).toEqual(['two', 'three'])
    expect(contents(await look('&filter=all&after=msg_99'))).toEqual([])
    expect((await look('&filter=new')).status).toBe(400)
  })

  it("is the caller's own, unless the rules grant more (C14)", async () => {
    service = await openTestService({
      agents: {
        Master: { permissions: { read_other_mailbox: 'allow' } },
        Worker: {},
        Other: { permissions: { read_other_mailbox: 'ask' } },
      },
    })
    await send('Master', 'Worker', 'secret')
    const look = (token: string) => service.get('/api/v1/mailbox?agent=Worker', token)
    expect(contents(await look(service.tokens.worker))).toEqual(['secret'])
    expect(contents(await look(service.tokens.master))).toEqual(['secret'])
    const asked = await look(service.tokens.other)
    expect([asked.status, asked.json.code]).toEqual([403, 'FORBIDDEN'])
    const denied = await service.get('/api/v1/mailbox?agent=Master', service.tokens.worker)
    expect([denied.status, denied.json.code]).toEqual([403, 'FORBIDDEN'])
    expect(denied.text).not.toContain('secret')
  })

  it("requires an agent's name from the operator, and a known one from everyone", async () => {
    service = await openTestService()
    expect((await service.get('/api/v1/mailbox')).json.hint).toContain('Master, Worker, Other')
    const unknown = await service.get('/api/v1/mailbox?agent=Nobody')
    expect([unknown.status, unknown.json.code]).toEqual([404, 'UNKNOWN_AGENT'])
  })

  it('streams a large mailbox in pieces while serving other requests', async () => {
    service = await openTestService()
    const content = 'é'.repeat(50_000)
    const count = 200
    await Promise.all(Array.from({ length: count }, () => send('Master', 'Worker', content)))
    const whole = service.get('/api/v1/mailbox?agent=Worker&filter=all')
    expect((await service.get('/healthz')).status).toBe(200)
    const { headers, json, text } = await whole
    expect(headers['transfer-encoding']).toBe('chunked')
    expect(text.length).toBeGreaterThan(count * 50_000)
    expect(json.messages.map((mail: { id: string }) => mail.id)).toEqual(
      Array.from({ length: count }, (_, index) => `msg_${index + 1}`),
    )
  })

  it('breaks the connection when a message is damaged, instead of sending a part as the whole', async () => {
    service = await openTestService()
    await send('Master', 'Other', 'damaged')
    for (let count = 0; count < 20; count++) await send('Master', 'Worker', 'x'.repeat(10_000))
    const file = new DatabaseSync(join(service.folder, 'orc.db'))
    file.exec(`UPDATE messages SET content = 'changed' WHERE seq IN (1, 21)`)
    file.close()
    const early = await service.get('/api/v1/mailbox?agent=Other&filter=all')
    expect([early.status, early.json.code]).toEqual([500, 'STORE_CORRUPT'])
    await expect(service.get('/api/v1/mailbox?agent=Worker&filter=all')).rejects.toThrow(/aborted|reset/i)
    expect((await service.get('/healthz')).status).toBe(200)
  })
})

describe('GET /api/v1/messages', () => {
  it('returns the newest messages the caller may see, oldest first (S1.14)', async () => {
    service = await openTestService({ agents: { Master: {}, Worker: { parent: 'Master' }, Other: {} } })
    await send('Worker', 'Other', 'w to o')
    await send('Other', 'Worker', 'o to w')
    await send('Other', 'Master', 'o to m')
    const look = async (token: string, query = '') =>
      contents(await service.get(`/api/v1/messages${query}`, token))
    expect(await look(service.tokens.operator)).toEqual(['w to o', 'o to w', 'o to m'])
    expect(await look(service.tokens.operator, '?limit=2')).toEqual(['o to w', 'o to m'])
    expect(await look(service.tokens.operator, '?agent=master')).toEqual(['o to m'])
    // Master leads Worker, and sees what it says and hears.
    expect(await look(service.tokens.master)).toEqual(['w to o', 'o to w', 'o to m'])
    expect(await look(service.tokens.worker)).toEqual(['w to o', 'o to w'])
    // Any exchange: between two, one thread, the page before.
    expect(await look(service.tokens.operator, '?agent=worker&with=Other')).toEqual(['w to o', 'o to w'])
    expect(await look(service.tokens.worker, '?with=master')).toEqual([])
    expect(await look(service.tokens.operator, '?thread=msg_2')).toEqual(['o to w'])
    expect(await look(service.tokens.operator, '?before=msg_3&limit=1')).toEqual(['o to w'])
    expect((await service.get('/api/v1/messages?before=x')).status).toBe(400)
    await service.clock.advance(60_000)
    await send('Other', 'Worker', 'later')
    expect(await look(service.tokens.operator, '?since=10s')).toEqual(['later'])
    expect(await look(service.tokens.operator, '?since=2030-01-01T00:00:30Z')).toEqual(['later'])
  })
})

describe('GET /api/v1/messages/{id}', () => {
  it('returns every step of the delivery with its evidence (C27)', async () => {
    service = await openTestService()
    await send('Master', 'Worker', 'follow me')
    await send('Master', 'Worker', 'not me')
    await service.clock.advance(1000)
    await service.say('Worker', 'mailbox_check')
    await service.clock.advance(31_000)
    await service.say('Worker', 'mailbox_check')
    await service.say('Worker', 'acknowledge', { ids: ['msg_1'] })
    const { json } = await service.get('/api/v1/messages/msg_1', service.tokens.master)
    expect(json).toMatchObject({ id: 'msg_1', content: 'follow me', delivery: 'read', attempts: 2 })
    expect(json.steps).toEqual([
      { at: '2030-01-01T00:00:00.000Z', state: 'queued', evidence: 'stored in the mailbox' },
      { at: '2030-01-01T00:00:01.000Z', state: 'written', evidence: "handed out to Worker's mailbox_check" },
      { at: '2030-01-01T00:00:31.000Z', state: 'queued', evidence: 'no acknowledgement in time' },
      { at: '2030-01-01T00:00:32.000Z', state: 'written', evidence: "handed out to Worker's mailbox_check" },
      { at: '2030-01-01T00:00:32.000Z', state: 'read', evidence: 'acknowledged by Worker' },
    ])
  })

  it('is visible only to callers who may read it', async () => {
    service = await openTestService()
    await send('Master', 'Worker', 'private')
    const look = async (token: string) => (await service.get('/api/v1/messages/msg_1', token)).status
    expect(await look(service.tokens.operator)).toBe(200)
    expect(await look(service.tokens.worker)).toBe(200)
    expect(await look(service.tokens.other)).toBe(404)
    expect((await service.get('/api/v1/messages/msg_2')).status).toBe(404)
    expect((await service.get('/api/v1/messages/msg_x')).status).toBe(400)
    expect((await service.get('/api/v1/messages/%E0%A4%A')).status).toBe(400)
  })
})
