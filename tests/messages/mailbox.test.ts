import { afterEach, describe, expect, it } from 'vitest'
import { openTestEngine, type TestEngine } from '../harness/engine.ts'

const TEAM = {
  agents: { Master: { permissions: { urgent: 'allow' as const } }, Worker: {} },
  limits: { rate: 'off' as const },
}

let engine: TestEngine
afterEach(() => engine.close())

const send = (content: string, fields = {}) =>
  engine.say('Master', 'send_message', { to: 'Worker', content, ...fields })
const contents = (receipt: unknown) =>
  ((receipt as { details: { messages: { content: string }[] } }).details.messages ?? []).map(
    (mail) => mail.content,
  )

describe('a mailbox', () => {
  it('hands out every waiting message in order, and clears them only by acknowledgement (C1)', async () => {
    engine = await openTestEngine(TEAM)
    for (const content of ['one', 'two', 'three']) await send(content)
    const checked = await engine.say('Worker', 'mailbox_check')
    expect(contents(checked)).toEqual(['one', 'two', 'three'])
    expect(contents(await engine.say('Worker', 'mailbox_check'))).toEqual([])
    expect(await engine.mailOf('Worker', 'unread')).toEqual([])
    await engine.say('Worker', 'acknowledge', { ids: ['msg_1', 'msg_3'] })
    await engine.clock.advance(31_000)
    expect(contents(await engine.say('Worker', 'mailbox_check'))).toEqual(['two'])
    expect((await engine.mailOf('Worker')).map((mail) => mail.delivery)).toEqual(['read', 'written', 'read'])
  })

  it('hands out unacknowledged messages again, also after a restart', async () => {
    engine = await openTestEngine(TEAM)
    await send('keep me')
    await engine.say('Worker', 'mailbox_check')
    engine = await engine.reopen()
    await engine.clock.advance(31_000)
    const again = await engine.say('Worker', 'mailbox_check')
    expect(contents(again)).toEqual(['keep me'])
    expect(
      (again as never as { details: { messages: { attempts: number }[] } }).details.messages[0]!.attempts,
    ).toBe(2)
  })

  it('does not let an agent acknowledge messages of another', async () => {
    engine = await openTestEngine({ agents: { Master: {}, Worker: {}, Other: {} } })
    await send('mine')
    await engine.say('Worker', 'mailbox_check')
    expect(await engine.say('Other', 'acknowledge', { ids: 'msg_1' })).toMatchObject({ code: 'NOT_FOUND' })
    expect(await engine.mailOf('Worker')).toMatchObject([{ delivery: 'written' }])
  })

  it("never hands out a message whose bytes changed on disk, and doesn't let it block the others", async () => {
    engine = await openTestEngine(TEAM)
    for (const content of ['one', 'two', 'three']) await send(content)
    await engine.store.write((tx) => tx.run(`UPDATE messages SET content = 'tw0' WHERE seq = 2`))
    expect(contents(await engine.say('Worker', 'mailbox_check'))).toEqual(['one', 'three'])
    expect(engine.entries.find((entry) => entry.type === 'delivery.failed')).toMatchObject({
      text: 'msg_2 is failed: its bytes changed on disk',
    })
    await expect(engine.mailOf('Worker')).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
  })

  it('returns a large mailbox in pages that fit into a response', async () => {
    engine = await openTestEngine(TEAM)
    for (let index = 0; index < 50; index++) await send('x'.repeat(100_000))
    const page = async (after?: string) => {
      const receipt = await engine.say('Worker', 'query_mailbox', {
        filter: 'all',
        ...(after === undefined ? {} : { after }),
      })
      return (receipt as never as { details: { messages: { id: string }[]; next?: string } }).details
    }
    const first = await page()
    expect(first).toMatchObject({ next: 'after="msg_40"' })
    const second = await page('msg_40')
    expect(second.messages.map((mail) => mail.id)).toEqual(
      Array.from({ length: 10 }, (_, index) => `msg_${41 + index}`),
    )
    expect(second.next).toBeUndefined()
  })

  it('names unknown ids and refuses invalid ones', async () => {
    engine = await openTestEngine(TEAM)
    await send('one')
    await engine.say('Worker', 'mailbox_check')
    expect(await engine.say('Worker', 'acknowledge', { ids: 'msg_1, msg_99' })).toMatchObject({
      details: { acknowledged: ['msg_1'], unknown: ['msg_99'] },
    })
    expect(await engine.say('Worker', 'acknowledge', { ids: 'msg_1' })).toMatchObject({
      status: 'ok',
      details: { acknowledged: [], already_read: ['msg_1'], unknown: [] },
    })
    expect(await engine.say('Worker', 'acknowledge', { ids: 'msg_99' })).toMatchObject({ code: 'NOT_FOUND' })
    expect(await engine.say('Worker', 'acknowledge', { ids: 'banana' })).toMatchObject({
      code: 'INVALID_COMMAND',
    })
    expect(await engine.say('Worker', 'acknowledge', { ids: [] })).toMatchObject({ code: 'INVALID_COMMAND' })
  })

  it('keeps receivers of a paused agent waiting (S1.24)', async () => {
    engine = await openTestEngine(TEAM)
    await send('held')
    await engine.order('request_action', { action: 'pause_session', target: 'Worker' })
    const signal = new AbortController().signal
    const waiting = engine.mailboxes.waitForMail('Worker', { waitMs: 25_000, evidence: 'long poll', signal })
    await engine.clock.advance(1000)
    expect(await engine.mailOf('Worker')).toMatchObject([{ delivery: 'queued' }])
    await engine.order('request_action', { action: 'resume_session', target: 'Worker' })
    expect((await waiting).map((mail) => mail.content)).toEqual(['held'])
  })
})

describe('state', () => {
  it('answers the three queries, by time and by agent (S1.8, C16)', async () => {
    engine = await openTestEngine(TEAM)
    await send('early')
    await engine.clock.advance(11 * 60_000)
    await send('late')
    const log = (filter: string, fields = {}) =>
      engine.order('query_state', { query: 'communication_log', filter, ...fields })
    expect(contents(await log('all'))).toEqual(['early', 'late'])
    expect(contents(await log('last_10_minutes'))).toEqual(['late'])
    expect(contents(await log('specific_agent', { agent: 'worker' }))).toEqual(['early', 'late'])
    expect(await log('specific_agent')).toMatchObject({ code: 'INVALID_COMMAND' })
    expect(await log('specific_agent', { agent: 'Nobody' })).toMatchObject({ code: 'UNKNOWN_AGENT' })
    expect(await engine.order('query_state', { query: 'active_agents' })).toMatchObject({
      details: { agents: [{}, {}] },
    })
    expect(await engine.order('query_state', { query: 'global_status' })).toMatchObject({
      details: { deliveries: [{ agent: 'Worker', state: 'queued', count: 2 }] },
    })
  })

  it('shows an agent only its own messages, unless the rules grant more (S1.14)', async () => {
    engine = await openTestEngine({ agents: { Master: {}, Worker: {}, Other: { permissions: {} } } })
    await send('between two')
    const log = (name: string) => engine.say(name, 'query_state', { query: 'communication_log' })
    expect(contents(await log('Worker'))).toEqual(['between two'])
    expect(contents(await log('Other'))).toEqual([])
  })
})
