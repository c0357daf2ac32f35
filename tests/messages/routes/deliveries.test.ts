import { connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { eventsIn, openStream, openTestService, type TestService } from '../../harness/service.ts'

let service: TestService
afterEach(() => service.close())

const send = (content: string) => service.say('Master', 'send_message', { to: 'Worker', content })
const next = (query = '', token = service.tokens.worker) =>
  service.get(`/api/v1/deliveries/next${query}`, token)
const idsOf = (reply: { json: { messages: { id: string }[] } }) => reply.json.messages.map((mail) => mail.id)
const deliveryOf = async (id: string) => (await service.get(`/api/v1/messages/${id}`)).json.delivery

/** The request has arrived once the service counts it among its open calls. */
async function untilOpen(kind: string, count: number) {
  const line = `orchub_open_calls{kind="${kind}"} ${count}`
  while (!(await service.get('/metrics')).text.includes(line))
    await new Promise((done) => setTimeout(done, 5))
}

describe('a long poll', () => {
  it('returns waiting messages at once, as written and not as read (C27)', async () => {
    service = await openTestService()
    await send('one')
    await send('two')
    const reply = await next()
    expect(idsOf(reply)).toEqual(['msg_1', 'msg_2'])
    expect(reply.json.messages[0]).toMatchObject({ content: 'one', delivery: 'written', attempts: 1 })
    expect(await deliveryOf('msg_1')).toBe('written')
    await service.command(service.tokens.worker, { type: 'acknowledge', ids: ['msg_1', 'msg_2'] })
    expect(await deliveryOf('msg_1')).toBe('read')
  })

  it('wakes when mail comes', async () => {
    service = await openTestService()
    const waiting = next('?wait=60')
    await untilOpen('poll', 1)
    await service.say('Master', 'send_message', { to: 'Other', content: 'not for Worker' })
    await send('wake up')
    expect(idsOf(await waiting)).toEqual(['msg_2'])
  })

  it('returns an empty list when its time is over', async () => {
    service = await openTestService()
    expect(idsOf(await next('?wait=0'))).toEqual([])
    const waiting = next('?wait=25')
    await untilOpen('poll', 1)
    await service.clock.advance(25_000)
    expect(idsOf(await waiting)).toEqual([])
  })

  it('returns a message again after 30 s without acknowledgement, and not before (C8)', async () => {
    service = await openTestService()
    await send('again')
    await send('done')
    expect(idsOf(await next())).toEqual(['msg_1', 'msg_2'])
    await service.command(service.tokens.worker, { type: 'acknowledge', ids: 'msg_2' })
    await service.clock.advance(29_999)
    expect(idsOf(await next('?wait=0'))).toEqual([])
    await service.clock.advance(1)
    const again = await next('?wait=0')
    expect(idsOf(again)).toEqual(['msg_1'])
    expect(again.json.messages[0].attempts).toBe(2)
  })

  it('wakes for a message that comes again', async () => {
    service = await openTestService()
    await send('again')
    await next()
    const waiting = next('?wait=60')
    await untilOpen('poll', 1)
    await service.clock.advance(30_000)
    expect(idsOf(await waiting)).toEqual(['msg_1'])
  })

  it('takes nothing for a caller that disconnected', async () => {
    service = await openTestService()
    const socket = connect(service.port, '127.0.0.1')
    socket.write(
      `GET /api/v1/deliveries/next?wait=60 HTTP/1.1\r\nHost: ${service.host}\r\nAuthorization: Bearer ${service.tokens.worker}\r\n\r\n`,
    )
    await untilOpen('poll', 1)
    socket.destroy()
    await untilOpen('poll', 0)
    await send('for the next one')
    expect(await deliveryOf('msg_1')).toBe('queued')
    expect(idsOf(await next())).toEqual(['msg_1'])
  })

  it('gives a message to one of two waiting callers', async () => {
    service = await openTestService()
    const both = [next('?wait=5'), next('?wait=5')]
    await untilOpen('poll', 2)
    await send('one only')
    await untilOpen('poll', 1)
    await service.clock.advance(5000)
    const ids = (await Promise.all(both)).map(idsOf).sort((a, b) => b.length - a.length)
    expect(ids).toEqual([['msg_1'], []])
  })

  it('ends at once when its token is revoked, and returns nothing', async () => {
    service = await openTestService()
    const waiting = next('?wait=60')
    await untilOpen('poll', 1)
    const revoked = await service.call('DELETE', '/api/v1/tokens/Worker')
    expect(revoked.json).toEqual({ revoked: 1 })
    expect((await waiting).status).toBe(401)
    await send('not for the old token')
    expect(await deliveryOf('msg_1')).toBe('queued')
  })

  it('is open to the agent itself, the operator, and agents that the rules allow', async () => {
    service = await openTestService()
    await send('x')
    expect((await next('?agent=Worker', service.tokens.other)).status).toBe(403)
    expect((await next('', service.tokens.operator)).status).toBe(400)
    expect(idsOf(await next('?agent=Worker', service.tokens.operator))).toEqual(['msg_1'])
  })
})

describe('a stream of deliveries', () => {
  const open = (token = service.tokens.worker, query = '') =>
    openStream(service.port, `/api/v1/deliveries/next${query}`, token)

  it('sends one event per message, as it arrives', async () => {
    service = await openTestService()
    await send('before')
    const stream = await open()
    expect(stream.headers['content-type']).toBe('text/event-stream')
    await stream.until((text) => eventsIn(text).length === 1)
    await send('after\nwith a line')
    await stream.until((text) => eventsIn(text).length === 2)
    expect(eventsIn(stream.text())).toMatchObject([
      { event: 'message', id: 'msg_1', data: { id: 'msg_1', content: 'before', delivery: 'written' } },
      { event: 'message', id: 'msg_2', data: { id: 'msg_2', content: 'after\nwith a line' } },
    ])
    stream.drop()
  })

  it('sends unacknowledged messages again (C8)', async () => {
    service = await openTestService()
    const stream = await open()
    await send('one')
    await send('two')
    await stream.until((text) => eventsIn(text).length === 2)
    await service.command(service.tokens.worker, { type: 'acknowledge', ids: 'msg_1' })
    await service.clock.advance(30_000)
    await stream.until((text) => eventsIn(text).length === 3)
    expect(eventsIn(stream.text())[2]).toMatchObject({ id: 'msg_2', data: { attempts: 2 } })
    stream.drop()
  })

  it('hands out no more than its reader accepts', async () => {
    service = await openTestService()
    const content = 'x'.repeat(100_000)
    const stream = await open()
    await stream.until((text) => text.includes('\n\n'))
    stream.answer.pause()
    const count = 150
    await Promise.all(Array.from({ length: count }, () => send(content)))
    await new Promise((done) => setTimeout(done, 100))
    const { json } = await service.get('/api/v1/deliveries?agent=Worker')
    const queued = json.deliveries.find((one: { state: string }) => one.state === 'queued')
    expect(queued.count).toBeGreaterThan(count / 3)
    stream.answer.resume()
    await stream.until(
      (text) =>
        text.length > count * content.length && text.includes(`id: msg_${count}\n`) && text.endsWith('\n\n'),
    )
    expect(eventsIn(stream.text()).map((event) => event.id)).toEqual(
      Array.from({ length: count }, (_, index) => `msg_${index + 1}`),
    )
    stream.drop()
  })

  it('ends at once when its token is revoked', async () => {
    service = await openTestService()
    const stream = await open()
    const kept = await open(service.tokens.operator, '?agent=Worker')
    await untilOpen('deliveries', 2)
    await service.call('DELETE', '/api/v1/tokens/worker')
    await stream.ended
    await send('after')
    await kept.until((text) => eventsIn(text).length === 1)
    expect(eventsIn(stream.text())).toEqual([])
    kept.drop()
  })

  it('leaves the mail of a disconnected reader to the next one', async () => {
    service = await openTestService()
    const stream = await open()
    await untilOpen('deliveries', 1)
    stream.drop()
    await untilOpen('deliveries', 0)
    await send('still here')
    expect(await deliveryOf('msg_1')).toBe('queued')
  })
})

describe('GET /api/v1/deliveries', () => {
  it('counts open deliveries by agent and state', async () => {
    service = await openTestService()
    await send('one')
    await send('two')
    await next()
    await send('three')
    await service.say('Master', 'send_message', { to: 'Other', content: 'x' })
    const all = [
      { agent: 'Other', state: 'queued', count: 1 },
      { agent: 'Worker', state: 'queued', count: 1 },
      { agent: 'Worker', state: 'written', count: 2 },
    ]
    expect((await service.get('/api/v1/deliveries')).json.deliveries).toEqual(all)
    expect((await service.get('/api/v1/deliveries?agent=worker')).json.deliveries).toEqual(all.slice(1))
  })

  it('shows an agent only its own if the rules forbid it to query others', async () => {
    service = await openTestService({ permissions: { query_state: 'deny' } })
    await send('one')
    await service.say('Master', 'send_message', { to: 'Other', content: 'x' })
    const { json } = await service.get('/api/v1/deliveries', service.tokens.other)
    expect(json.deliveries).toEqual([{ agent: 'Other', state: 'queued', count: 1 }])
    expect((await service.get('/api/v1/state', service.tokens.other)).status).toBe(403)
  })
})
