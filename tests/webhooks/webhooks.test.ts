import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { ConfigInput } from '../../src/config/config.ts'
import { bodyOf, isWanted } from '../../src/webhooks/event.ts'
import { createSender, retryDelay } from '../../src/webhooks/send.ts'
import { isGenuine, openReceiver, type Receiver, taken } from '../fakes/webhook-receiver.ts'
import { openTestEngine, type TestEngine } from '../harness/engine.ts'

const SECRET = `whsec_${Buffer.from('a secret of twenty-four!').toString('base64')}`
const ENV = {
  CHAT_SECRET: SECRET,
  PLAIN: 'a long enough passphrase',
  SHORT: 'short',
  BROKEN: 'whsec_not base64!',
}

let engine: TestEngine | undefined
let receiver: Receiver
beforeEach(async () => {
  receiver = await openReceiver()
})
afterEach(async () => {
  await engine?.close()
  engine = undefined
  await receiver.close()
})

const TEAM = { agents: { Ada: {}, Ben: {} }, limits: { rate: 'off' } } satisfies ConfigInput
type Webhooks = NonNullable<ConfigInput['webhooks']>
async function open(webhooks: Webhooks, env: Record<string, string> = ENV) {
  engine = await openTestEngine({ ...TEAM, webhooks }, { env, webhookTimeoutMs: 300 })
  return engine
}
const chat = (more: Partial<Webhooks[string]> = {}): Webhooks => ({
  chat: { url: receiver.url, events: ['message.accepted'], secret_env: 'CHAT_SECRET', ...more },
})
const send = (content: string) => engine!.say('Ada', 'send_message', { to: 'Ben', content })
const state = async (name = 'chat') => (await engine!.webhooks.list()).find((one) => one.name === name)!
/** The network runs in real time, everything else in simulated time. */
async function until(holds: () => Promise<boolean>) {
  const deadline = Date.now() + 10_000
  while (!(await holds())) {
    if (Date.now() > deadline)
      throw new Error(`never came true: ${JSON.stringify(await engine!.webhooks.list())}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
/** Sends a message and returns the state after its first failure. */
async function sendInVain() {
  await send('hello')
  await until(async () => (await state()).last_error !== undefined)
  return await state()
}
const pass = (ms: number) => engine!.clock.advance(ms)

describe('an event', () => {
  it('is posted with an id, a timestamp and a signature, as in Standard Webhooks', async () => {
    await open(chat())
    await send('hello')
    const [letter] = await receiver.got(1)
    expect(letter!.headers['content-type']).toBe('application/json')
    expect(letter!.headers['webhook-id']).toMatch(/^evt_[0-9a-f]{32}$/)
    expect(Number(letter!.headers['webhook-timestamp'])).toBe(Math.floor(engine!.clock.now() / 1000))
    expect(isGenuine(letter!, SECRET)).toBe(true)
    expect(isGenuine({ ...letter!, body: `${letter!.body} ` }, SECRET)).toBe(false)
    const entry = engine!.entries.find(({ type }) => type === 'message.accepted')!
    expect(letter!.json).toEqual({
      id: `evt_${entry.hash.slice(0, 32)}`,
      type: 'message.accepted',
      timestamp: entry.at,
      data: { ...entry.data, seq: entry.seq, actor: 'Ada', subject: 'Ben', text: entry.text },
    })
    await until(async () => (await state()).sent === 1)
    expect(await state()).toMatchObject({ state: 'active', pending: 0, dropped: 0 })
  })

  it('arrives in order, and only if its type is listed', async () => {
    await open(chat())
    for (const text of ['one', 'two', 'three']) await send(text)
    await engine!.say('Ada', 'update_status', { status: 'idle' })
    const letters = await receiver.got(3)
    await until(async () => (await state()).pending === 0)
    expect(letters).toHaveLength(3)
    const seqs = letters.map(({ json }) => json.data.seq)
    expect(seqs).toEqual(seqs.toSorted((a, b) => a - b))
  })

  it('is one line of text for chat tools, without links or channel mentions of agents', async () => {
    await open({ chat: { url: receiver.url, events: ['message.*'], format: 'slack' } })
    await engine!.say('Ada', 'send_message', {
      to: 'Ben',
      title: '<!channel> <https://evil.example|look> @everyone & co',
      content: 'x',
    })
    const [letter] = await receiver.got(1)
    expect(letter!.headers['webhook-signature']).toBeUndefined()
    expect(letter!.json.text).toContain('*message.accepted* Ada')
    expect(letter!.json.text).toContain('&lt;!channel&gt;')
    expect(letter!.json.text).not.toMatch(/<|@everyone/)
  })

  it('about a request to a person contains no secrets', async () => {
    await open(chat({ events: ['human.asked'] }))
    const token = ['ghp', 'a'.repeat(36)].join('_')
    await engine!.say('Ada', 'request_user_input', { question: `May I use ${token}?` })
    const [letter] = await receiver.got(1)
    expect(letter!.json).toMatchObject({ type: 'human.asked', data: { request_id: 'req_1', actor: 'Ada' } })
    expect(letter!.body).not.toContain(token)
  })
})

describe('a receiver that fails', () => {
  it('gets the event again later, with the same id and a new signature', async () => {
    await open(chat())
    receiver.answer = (_, response) => void response.writeHead(500).end('out of order')
    expect(await sendInVain()).toMatchObject({
      state: 'failing',
      pending: 1,
      last_error: '500: out of order',
    })
    receiver.answer = taken
    await pass(5000)
    const [first, second] = await receiver.got(2)
    expect(second!.headers['webhook-id']).toBe(first!.headers['webhook-id'])
    expect(second!.headers['webhook-timestamp']).not.toBe(first!.headers['webhook-timestamp'])
    expect(isGenuine(second!, SECRET)).toBe(true)
    await until(async () => (await state()).sent === 1)
    expect(await state()).toMatchObject({ state: 'active', pending: 0 })
  })

  it('is dead after a day: its queue is dropped, people are notified, and a test reactivates it', async () => {
    await open(chat())
    receiver.answer = (_, response) => void response.writeHead(503).end()
    await sendInVain()
    for (let hour = 0; hour < 26 && (await state()).state !== 'dead'; hour++) {
      const before = receiver.letters.length
      await pass(3600_000)
      await until(async () => receiver.letters.length > before || (await state()).state === 'dead')
      await until(
        async () => Date.parse((await state()).next_attempt_at ?? '9999-01-01') > engine!.clock.now(),
      )
    }
    expect(await state()).toMatchObject({ state: 'dead', pending: 0, dropped: 1 })
    expect(receiver.letters.length).toBeGreaterThan(20)
    expect(engine!.entries.filter(({ type }) => type === 'webhook.dead')).toHaveLength(1)
    const asked = engine!.entries.find(({ type }) => type === 'human.asked')!
    expect(asked.text).toContain('the webhook chat is dead')
    const count = receiver.letters.length
    await send('nobody hears')
    await pass(3600_000)
    expect(receiver.letters).toHaveLength(count)
    expect((await state()).pending).toBe(0)
    expect(await engine!.webhooks.test('chat')).toMatchObject({ outcome: 'failed' })
    expect((await state()).state).toBe('dead')
    receiver.answer = taken
    expect(await engine!.webhooks.test('chat')).toMatchObject({ outcome: 'sent', status: 204 })
    await send('back')
    await until(async () => (await state()).sent === 1)
    expect(receiver.letters.at(-1)!.json.data.text).toContain('back')
    expect(receiver.letters.some(({ body }) => body.includes('nobody hears'))).toBe(false)
  })

  it('with the answer 410 is dead at once', async () => {
    await open(chat())
    receiver.answer = (_, response) => void response.writeHead(410).end()
    await send('hello')
    await until(async () => (await state()).state === 'dead')
    expect(receiver.letters).toHaveLength(1)
  })

  it('with a redirect is not followed', async () => {
    const elsewhere = await openReceiver()
    onTestFinished(() => elsewhere.close())
    await open(chat())
    receiver.answer = (_, response) => void response.writeHead(307, { location: elsewhere.url }).end()
    expect((await sendInVain()).last_error).toContain('a redirect, which is not followed')
    expect(elsewhere.letters).toEqual([])
  })

  it('with Retry-After gets the next attempt after that time', async () => {
    await open(chat())
    receiver.answer = (_, response) => void response.writeHead(429, { 'retry-after': '600' }).end()
    await send('hello')
    await until(async () => (await state()).next_attempt_at !== undefined)
    expect(Date.parse((await state()).next_attempt_at!)).toBe(engine!.clock.now() + 600_000)
  })

  it('that rejects one event three times gets the next ones', async () => {
    await open(chat())
    const refuse = receiver.letters
    receiver.answer = (letter, response) => {
      const isBad = JSON.stringify(letter.json).includes('poison')
      response.writeHead(isBad ? 400 : 204).end(isBad ? 'invalid_payload' : '')
    }
    await send('poison')
    await send('good')
    for (let round = 0; round < 4; round++) {
      await until(async () => (await state()).next_attempt_at !== undefined || (await state()).sent === 1)
      await pass(60_000)
    }
    await until(async () => (await state()).sent === 1)
    expect(refuse.filter(({ body }) => body.includes('poison'))).toHaveLength(3)
    expect(await state()).toMatchObject({ state: 'active', dropped: 1, pending: 0 })
    expect(engine!.types()).toContain('webhook.dropped')
  })

  it('that hangs delays no other receiver', async () => {
    const quick = await openReceiver()
    onTestFinished(() => quick.close())
    await open({ ...chat(), quick: { url: quick.url, events: ['message.accepted'], secret_env: 'PLAIN' } })
    receiver.answer = () => {}
    await send('one')
    await send('two')
    const letters = await quick.got(2)
    expect(letters.every((letter) => isGenuine(letter, ENV.PLAIN))).toBe(true)
    expect((await state('quick')).state).toBe('active')
    await until(async () => (await state()).last_error !== undefined)
    expect((await state()).last_error).toBe('no response within 0.3 s')
    expect(receiver.letters).toHaveLength(1)
  })

  it('with an endless answer is cut off', async () => {
    await open(chat())
    receiver.answer = (_, response) => {
      response.writeHead(500)
      const flood = setInterval(() => response.write('x'.repeat(1000)), 1)
      response.on('close', () => clearInterval(flood))
    }
    expect((await sendInVain()).last_error!.length).toBeLessThan(300)
  })

  it('that accepts an event with an endless answer has received it', async () => {
    await open(chat())
    receiver.answer = (_, response) => {
      response.writeHead(200)
      response.flushHeaders()
    }
    await send('hello')
    await until(async () => (await state()).sent === 1)
    expect(await state()).toMatchObject({ state: 'active', pending: 0 })
  })

  it('with a password in its URL is not called, and the error hides the URL', async () => {
    await open(
      { chat: { url_env: 'CHAT_URL', events: ['message.accepted'], format: 'slack' } },
      { CHAT_URL: receiver.url.replace('//', '//ada:hunter2@').replace('/hook', '/hook/T0P/S3CRET') },
    )
    expect(JSON.stringify(await sendInVain())).not.toMatch(/hunter2|S3CRET/)
    expect(receiver.letters).toEqual([])
  })

  it('that is unreachable is reported with the reason, without its URL', async () => {
    const url = receiver.url.replace('/hook', '/hook/T0P/S3CRET')
    await open(
      { chat: { url_env: 'CHAT_URL', events: ['message.accepted'], format: 'slack' } },
      { CHAT_URL: url },
    )
    await receiver.close()
    expect(await sendInVain()).toMatchObject({ last_error: 'ECONNREFUSED', url: `${new URL(url).origin}/…` })
    expect(JSON.stringify(engine!.entries)).not.toContain('S3CRET')
    receiver = await openReceiver()
  })
})

describe('a secret', () => {
  it.each([
    ['is missing', 'MISSING', 'the variable MISSING is not set'],
    ['is too short', 'SHORT', 'the secret is shorter than 16 bytes'],
    ['is not base64 after whsec_', 'BROKEN', 'the secret after whsec_ is not base64'],
  ])('that %s sends nothing and says so', async (_, secret_env, error) => {
    await open(chat({ secret_env }))
    expect(await sendInVain()).toMatchObject({ state: 'failing', pending: 1, last_error: error })
    expect(receiver.letters).toEqual([])
  })
})

describe('across restarts', () => {
  it('no event is lost, and each has one id', async () => {
    await open(chat())
    receiver.answer = (_, response) => void response.writeHead(500).end()
    await send('one')
    await until(async () => (await state()).last_error !== undefined)
    await send('two')
    engine = await engine!.reopen()
    receiver.answer = taken
    await pass(10_000)
    await until(async () => (await state()).sent === 2)
    const ids = receiver.letters.map(({ headers }) => headers['webhook-id'])
    expect(new Set(ids).size).toBe(2)
  })

  it('committed entries that were not queued yet are found', async () => {
    await open(chat())
    await send('one')
    await until(async () => (await state()).sent === 1)
    // The state after a crash between the two commits.
    await engine!.store.write((tx) => tx.run('UPDATE webhooks SET seen = 0'))
    const { folder, clock, engine: before } = engine!
    await before.close('leave')
    engine = await openTestEngine(
      { ...TEAM, webhooks: chat() },
      { env: ENV, folder, clock, webhookTimeoutMs: 300 },
    )
    await until(async () => (await state()).sent === 2)
    expect(receiver.letters[1]!.headers['webhook-id']).toBe(receiver.letters[0]!.headers['webhook-id'])
  })

  it('a new webhook gets no earlier events, and a removed one is deleted', async () => {
    engine = await openTestEngine(TEAM, { env: ENV })
    await send('past')
    const { folder, clock } = engine
    await engine.engine.close('leave')
    engine = await openTestEngine({ ...TEAM, webhooks: chat() }, { env: ENV, folder, clock })
    await send('present')
    await until(async () => (await state()).sent === 1)
    expect(receiver.letters[0]!.body).toContain('present')
    engine = await engine.reopen({ agents: { Ada: {}, Ben: {} } })
    expect(await engine.store.all('SELECT * FROM webhooks')).toEqual([])
  })
})

describe('a flood of events', () => {
  it('to an unreachable receiver keeps the newest thousand and counts the rest', async () => {
    await open(chat())
    receiver.answer = (_, response) => void response.writeHead(500).end()
    await Promise.all(Array.from({ length: 1200 }, (_, index) => send(`message ${index}`)))
    await until(async () => (await state()).pending === 1000)
    expect((await state()).dropped).toBe(200)
  })
})

describe('the parts', () => {
  it('match types by name, by prefix or all, and private ones by name only', () => {
    const open = { type: 'task.completed', class: 'internal' } as const
    const secret = { type: 'security.forbidden', class: 'private' } as const
    expect(isWanted(['task.completed'], open)).toBe(true)
    expect(isWanted(['task.*'], open)).toBe(true)
    expect(isWanted(['*'], open)).toBe(true)
    expect(isWanted(['human.*', 'task.failed'], open)).toBe(false)
    expect(isWanted(['tas.*'], open)).toBe(false)
    expect(isWanted(['*', 'security.*'], secret)).toBe(false)
    expect(isWanted(['security.forbidden'], secret)).toBe(true)
    expect(isWanted(['*', 'webhook.*', 'webhook.dead'], { type: 'webhook.dead', class: 'internal' })).toBe(
      false,
    )
  })

  it('wait longer each time, at most an hour, with jitter', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 10_000 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (n, r) => {
          const ms = retryDelay(n, () => r)
          expect(ms).toBeGreaterThanOrEqual(2500)
          expect(ms).toBeLessThanOrEqual(3600_000)
        },
      ),
    )
    expect(retryDelay(3, () => 0)).toBe(20_000)
    expect(retryDelay(3, () => 0.5)).toBe(15_000)
  })

  it.each([
    ['120', 120_000],
    ['Thu, 01 Jan 1970 00:01:00 GMT', 60_000],
    ['999999999', 3600_000],
    ['-5', undefined],
    ['soon', undefined],
  ])('wait as long as Retry-After: %s asks for, at most an hour', async (header, wait) => {
    receiver.answer = (_, response) => void response.writeHead(503, { 'retry-after': header }).end()
    const config = { name: 'chat', url: receiver.url, events: ['*'], format: 'json' as const }
    const clock = { now: () => 0, after: () => () => {} }
    const options = { config, clock, env: {}, timeoutMs: 2000, redact: (text: string) => text }
    const sender = createSender(options, new AbortController().signal)
    const event = { id: 'evt_1', type: 'a.b', at: 'now', actor: 'Ada', text: 'x', data: {} }
    const posted = await sender.send(event)
    expect(posted).toMatchObject({ outcome: 'failed', status: 503 })
    expect(posted.outcome === 'sent' ? 0 : posted.retryAfterMs).toBe(wait)
  })

  it('limit the size of a body', () => {
    const event = { id: 'evt_1', type: 'a.b', at: 'now', actor: 'Ada', text: 'x'.repeat(50_000), data: {} }
    expect(Buffer.byteLength(bodyOf(event, 'json'))).toBeLessThan(20_000)
    expect(JSON.parse(bodyOf(event, 'json')).data.truncated).toBe(true)
    expect(bodyOf(event, 'slack').length).toBeLessThan(4000)
  })
})
