import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  eventsIn,
  openStream,
  openTestService,
  type SeenEvent,
  type TestService,
} from '../harness/service.ts'

let service: TestService
beforeEach(async () => {
  service = await openTestService()
})
afterEach(() => service.close())

const open = (query = '', token = service.tokens.operator, headers: Record<string, string> = {}) =>
  openStream(service.port, `/api/v1/events${query}`, token, headers)
const send = (from: string, to: string, content: string) => service.say(from, 'send_message', { to, content })
const seqs = (events: readonly SeenEvent[]) => events.map((event) => Number(event.id))
const upTo = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index)
const head = () => service.entries.at(-1)!.seq

describe('GET /api/v1/events', () => {
  it('sends new entries only, unless more are requested', async () => {
    await send('Master', 'Worker', 'old')
    const stream = await open()
    expect(stream.headers['content-type']).toBe('text/event-stream')
    await send('Master', 'Worker', 'new')
    await stream.until((text) => eventsIn(text).length === 1)
    const [event] = eventsIn(stream.text())
    expect(event).toMatchObject({ event: 'message.accepted', id: head() })
    expect(event!.data).toMatchObject({ seq: head(), actor: 'Master', subject: 'Worker', text: 'new' })
    expect(event!.data.line).toBe('[2030-01-01T00:00:00.000Z] [Master→Worker] MESSAGE.ACCEPTED: new')
    stream.drop()
  })

  it('begins with its position, so that even a reader that got no event can resume', async () => {
    await send('Master', 'Worker', 'old')
    const stream = await open()
    await stream.until((text) => text.includes('\n\n'))
    expect(stream.text()).toContain(`id: ${head()}\n`)
    stream.drop()
  })

  it.each([
    ['?after', (seq: number) => open(`?after=${seq}`)],
    ['Last-Event-ID', (seq: number) => open('', service.tokens.operator, { 'last-event-id': String(seq) })],
    [
      'Last-Event-ID over ?after',
      (seq: number) => open('?after=0', service.tokens.operator, { 'last-event-id': String(seq) }),
    ],
  ])('resumes with %s', async (_, resume) => {
    for (let count = 0; count < 5; count++) await send('Master', 'Worker', 'x')
    const from = head() - 3
    const stream = await resume(from)
    await stream.until((text) => eventsIn(text).length === 3)
    await send('Master', 'Worker', 'x')
    await stream.until((text) => eventsIn(text).length === 4)
    expect(seqs(eventsIn(stream.text()))).toEqual(upTo(from + 1, head()))
    stream.drop()
  })

  it('has no gaps and no duplicates while others write and the reader reconnects', async () => {
    let isWriting = true
    const writing = (async () => {
      for (let round = 0; round < 60; round++) {
        await Promise.all(Array.from({ length: 25 }, () => send('Master', 'Worker', 'x')))
      }
      isWriting = false
    })()
    const seen: number[] = []
    let last = 0
    for (let take = 1; isWriting || last < head(); take++) {
      const stream = await open('', service.tokens.operator, { 'last-event-id': String(last) })
      await stream.until(
        (text) =>
          eventsIn(text).length >= Math.min(take * 7, 400) ||
          (!isWriting && seqs(eventsIn(text)).at(-1) === head()),
      )
      stream.drop()
      const got = seqs(eventsIn(stream.text()))
      seen.push(...got)
      last = got.at(-1) ?? last
    }
    await writing
    expect(seen).toEqual(upTo(1, head()))
  })

  it('lets a slow reader catch up from the store, and buffers nothing for it in memory', async () => {
    const stream = await open('?after=0')
    await stream.until((text) => text.includes('\n\n'))
    stream.answer.pause()
    const big = 'x'.repeat(250)
    for (let round = 0; round < 40; round++) {
      await Promise.all(Array.from({ length: 250 }, () => send('Master', 'Worker', big)))
    }
    const buffered = service.entries.length * 600
    expect(buffered).toBeGreaterThan(5_000_000)
    stream.answer.resume()
    await stream.until((text) => text.includes(`\nid: ${head()}\n`))
    await send('Master', 'Worker', 'live again')
    await stream.until((text) => text.includes('live again'))
    expect(seqs(eventsIn(stream.text()))).toEqual(upTo(1, head()))
    stream.drop()
  })

  it('shows an agent public entries and those it is a party to, live and from the store', async () => {
    const note = (kind: 'public' | 'internal' | 'private', actor: string) =>
      service.store.write((tx) =>
        tx.audit({ type: 'test.note', class: kind, actor, text: `${kind} of ${actor}` }),
      )
    const write = async () => {
      await send('Master', 'Worker', 'for Worker')
      await send('Master', 'Other', 'not for Worker')
      await note('public', 'Other')
      await note('internal', 'Worker')
      await note('private', 'Worker')
    }
    const wanted = ['for Worker', 'public of Other', 'internal of Worker']
    await write()
    const stream = await open('?after=0', service.tokens.worker)
    const texts = () => eventsIn(stream.text()).map((event) => event.data.text)
    await stream.until((text) => text.includes('internal of Worker'))
    expect(texts()).toEqual(wanted)
    await write()
    await stream.until((text) => text.split('internal of Worker').length > 3)
    expect(texts()).toEqual([...wanted, ...wanted])
    const { json } = await service.get('/api/v1/audit', service.tokens.worker)
    expect(json.entries.map((entry: { text: string }) => entry.text)).toEqual([...wanted, ...wanted])
    stream.drop()
  })

  it('refuses the id of an event that does not exist', async () => {
    const ahead = await service.get('/api/v1/events?after=99999')
    expect([ahead.status, ahead.json.code]).toEqual([409, 'CONFLICT'])
    for (const id of ['x', '-1', '1e3', '99999999999999999999']) {
      const reply = await service.call('GET', '/api/v1/events', { headers: { 'last-event-id': id } })
      expect(reply.status, id).toBe(400)
    }
  })

  it('ends at once when its token is revoked, and at the next event for an agent that left the team', async () => {
    const revoked = await open('', service.tokens.worker)
    const left = await open('', service.tokens.other)
    await service.call('DELETE', '/api/v1/tokens/Worker')
    await revoked.ended
    const { config } = service.team()
    await service.reload({ ...config, agents: config.agents.filter((agent) => agent.name !== 'Other') })
    await send('Master', 'Worker', 'x')
    await left.ended
    expect(eventsIn(revoked.text())).toEqual([])
    expect(eventsIn(left.text())).toEqual([])
  })

  it('sends a heartbeat every 15 s', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    try {
      const stream = await open()
      await stream.until((text) => text.includes('\n\n'))
      vi.advanceTimersByTime(15_000)
      await stream.until((text) => text.includes('\n: still here\n\n'))
      stream.drop()
    } finally {
      vi.useRealTimers()
    }
  })

  it('survives readers that disconnect in the middle', async () => {
    const sockets = Array.from({ length: 20 }, () => {
      const socket = connect(service.port, '127.0.0.1')
      socket.on('error', () => {})
      socket.write(
        `GET /api/v1/events?after=0 HTTP/1.1\r\nHost: ${service.host}\r\nAuthorization: Bearer ${service.tokens.operator}\r\n\r\n`,
      )
      return socket
    })
    for (const socket of sockets) {
      await send('Master', 'Worker', 'x')
      socket.resetAndDestroy()
    }
    await send('Master', 'Worker', 'x')
    while (!(await service.get('/metrics')).text.includes('orchub_open_calls{kind="events"} 0')) {
      await new Promise((done) => setTimeout(done, 10))
    }
    expect((await service.get('/healthz')).status).toBe(200)
  })
})
