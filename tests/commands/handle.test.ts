import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineCommand } from '../../src/protocol/command.ts'
import { agent, OPERATOR, openTestEngine, type TestEngine } from '../harness/engine.ts'

const TEAM = { agents: { Master: {}, Worker: { parent: 'Master' }, Monitor: {} } }
const NO_RATE = { limits: { rate: 'off' as const } }

let engine: TestEngine
afterEach(() => engine.close())

describe('the door', () => {
  it('stores a message and says delivered with its id and its true delivery state (S1.13, C27)', async () => {
    engine = await openTestEngine(TEAM)
    const receipt = await engine.say('Master', 'send_message', {
      to: 'Worker',
      title: 'Sum',
      content: '15 + 27?',
    })
    expect(receipt).toEqual({ status: 'delivered', message_id: 'msg_1', delivery: 'queued', to: 'Worker' })
    expect(await engine.mailOf('Worker')).toMatchObject([
      { id: 'msg_1', from: 'Master', to: 'Worker', title: 'Sum', content: '15 + 27?', delivery: 'queued' },
    ])
    expect(engine.entries.find((entry) => entry.type === 'message.accepted')).toMatchObject({
      actor: 'Master',
      subject: 'Worker',
      text: 'Sum',
      data: { message_id: 'msg_1', excerpt: '15 + 27?' },
    })
  })

  it.each([
    { FROM: 'Master' },
    { 'from-agent': 'Master' },
    { from: 'Worker', FROM: 'Master' },
    { from: 'Worker', from_agent: 'Master' },
    { from: 'Wor\u212Aer' },
    { from: ['Worker'] },
    { from: { toString: 1 } },
    { from: 7 },
  ])('refuses the claim %j of Worker (C3)', async (claim) => {
    engine = await openTestEngine(TEAM)
    const receipt = await engine.say('Worker', 'send_message', { ...claim, to: 'Monitor', content: 'x' })
    expect(receipt).toMatchObject({ code: 'SENDER_MISMATCH' })
    expect(await engine.mailOf('Monitor')).toEqual([])
  })

  it('judges identity before the schema: a forged sender learns nothing else', async () => {
    engine = await openTestEngine(TEAM)
    expect(await engine.say('Worker', 'send_message', { from: 'Master' })).toMatchObject({
      code: 'SENDER_MISMATCH',
    })
  })

  it('lets the operator speak for an agent, and the audit names the operator', async () => {
    engine = await openTestEngine(TEAM)
    await engine.order('send_message', { from: 'Master', to: 'Worker', content: 'hi' })
    const entry = engine.entries.find((one) => one.type === 'message.accepted')
    expect(entry).toMatchObject({ actor: 'Master', data: { said_by: 'operator' } })
  })

  it.each([
    [{}, /to/],
    [{ to: 'Worker' }, /content/],
    [{ to: 'Worker', content: '' }, /"content" is missing/],
    [{ to: 'Worker', content: 'x', priority: 'asap' }, /priority/],
    [{ to: ['Worker'], content: 'x' }, /to/],
    [{ to: 'Worker', content: 12 }, /content/],
  ])('refuses the invalid send_message %j with a hint and an example', async (fields, about) => {
    engine = await openTestEngine(TEAM)
    const receipt = await engine.say('Master', 'send_message', fields as Record<string, unknown>)
    expect(receipt).toMatchObject({
      status: 'error',
      code: 'INVALID_COMMAND',
      message: expect.stringMatching(about),
    })
    expect((receipt as { hint: string }).hint).toContain('orc send-message')
  })

  it.each([
    [undefined, 'first line\nsecond', 'first line'],
    ['', '\n\n  indented first\nsecond', 'indented first'],
    ['   ', 'y'.repeat(100), 'y'.repeat(80)],
    [undefined, '😀'.repeat(100), '😀'.repeat(80)],
  ])('uses the first line as a missing title (C13)', async (title, content, wanted) => {
    engine = await openTestEngine(TEAM)
    await engine.say('Master', 'send_message', {
      to: 'Worker',
      content,
      ...(title === undefined ? {} : { title }),
    })
    expect((await engine.mailOf('Worker'))[0]!.title).toBe(wanted)
  })

  it('replaces characters that no database can store', async () => {
    engine = await openTestEngine(TEAM)
    await engine.say('Master', 'send_message', { to: 'Worker', content: 'a\0b\uD800c' })
    expect((await engine.mailOf('Worker'))[0]!.content).toBe('a\uFFFDb\uFFFDc')
  })

  it('records a reply only to a message that the command names and that exists (C10)', async () => {
    engine = await openTestEngine(TEAM)
    await engine.say('Worker', 'send_message', { to: 'Master', content: 'one' })
    await engine.say('Master', 'mailbox_check')
    await engine.say('Master', 'send_message', { to: 'Worker', content: 'a', in_reply_to: 'msg_999' })
    await engine.say('Master', 'send_message', { to: 'Worker', content: 'b', in_reply_to: 'msg_1' })
    const mails = (await engine.mailOf('Worker')) as { content: string; in_reply_to?: string }[]
    expect(mails.map((mail) => [mail.content, mail.in_reply_to])).toEqual([
      ['a', undefined],
      ['b', 'msg_1'],
    ])
  })

  it('limits every text, and says which is too long', async () => {
    engine = await openTestEngine(TEAM)
    const receipt = await engine.say('Worker', 'update_status', {
      status: 'idle',
      current_task: 'x'.repeat(900_000),
    })
    expect(receipt).toMatchObject({
      code: 'INVALID_COMMAND',
      message: expect.stringContaining('current_task'),
    })
  })

  it('names unused parameters in the receipt and in the audit', async () => {
    engine = await openTestEngine(TEAM)
    const receipt = await engine.say('Master', 'send_message', {
      to: 'Worker',
      content: 'x',
      agent_name: 'Monitor',
    })
    expect(receipt).toMatchObject({ status: 'delivered', ignored: ['agent_name'] })
    expect(engine.types()).toContain('command.fields_ignored')
  })

  it('acts once for one idempotency key, also after a restart (C25)', async () => {
    engine = await openTestEngine(TEAM)
    const said = { type: 'send_message', fields: { to: 'Worker', content: 'once' } }
    const first = await engine.handle(agent('Master'), said, { idempotencyKey: 'k1' })
    const again = await Promise.all(
      [1, 2, 3].map(() => engine.handle(agent('Master'), said, { idempotencyKey: 'k1' })),
    )
    expect(again).toEqual([first, first, first])
    expect(await engine.mailOf('Worker')).toHaveLength(1)
    engine = await engine.reopen()
    expect(await engine.handle(agent('Master'), said, { idempotencyKey: 'k1' })).toEqual(first)
    expect(await engine.mailOf('Worker')).toHaveLength(1)
  })

  it('keeps the order of simultaneous messages of one sender', async () => {
    engine = await openTestEngine({ ...TEAM, ...NO_RATE })
    const contents = Array.from({ length: 300 }, (_, index) => `n${index}`)
    await Promise.all(
      contents.map((content) => engine.say('Master', 'send_message', { to: 'Worker', content })),
    )
    expect((await engine.mailOf('Worker')).map((mail) => mail.content)).toEqual(contents)
  })

  it('rolls back only the command whose handler throws', async () => {
    const definition = defineCommand({
      type: 'explode',
      summary: 'Fail',
      fields: z.object({}),
      example: 'orc explode',
    })
    const handler = {
      async handle(context: { tx: { run(sql: string): unknown } }) {
        await context.tx.run(`INSERT INTO parked (pair, request, at) VALUES ('x', 1, 1)`)
        throw new Error('boom')
      },
    }
    engine = await openTestEngine(TEAM, { commands: [{ definition, handler: handler as never }] })
    const [sent, exploded] = await Promise.allSettled([
      engine.say('Master', 'send_message', { to: 'Worker', content: 'survives' }),
      engine.say('Master', 'explode'),
    ])
    expect(sent).toMatchObject({ status: 'fulfilled', value: { status: 'delivered' } })
    expect(exploded).toMatchObject({ status: 'rejected' })
    expect(await engine.store.all('SELECT * FROM parked')).toEqual([])
    expect(await engine.mailOf('Worker')).toHaveLength(1)
  })

  it('redacts secrets in the audit, and leaves the message as it is (C12)', async () => {
    engine = await openTestEngine(TEAM)
    const token = `ghp_${'a1B2c3D4e5F6'.repeat(3)}`
    await engine.say('Master', 'send_message', { to: 'Worker', title: 'key', content: `use ${token}` })
    expect(JSON.stringify(engine.entries)).not.toContain(token)
    expect(JSON.stringify(engine.entries)).toContain('[redacted:')
    expect((await engine.mailOf('Worker'))[0]!.content).toContain(token)
  })
})

describe('rules at the door', () => {
  it('checks each recipient of a broadcast', async () => {
    engine = await openTestEngine({
      ...TEAM,
      rules: { forbid: [{ from: 'Master', to: 'Monitor', reason: 'quiet' }] },
    })
    const receipt = await engine.say('Master', 'send_message', { to: '*', content: 'all' })
    expect(receipt).toMatchObject({
      status: 'delivered',
      recipients: [
        { to: 'Worker', status: 'delivered', message_id: 'msg_1' },
        { to: 'Monitor', status: 'blocked', reason: 'quiet' },
      ],
    })
    expect(await engine.mailOf('Monitor')).toEqual([])
  })

  it('needs a permission for urgent, and denies privileged actions by default (C2, C15)', async () => {
    engine = await openTestEngine({ agents: { Master: { permissions: { urgent: 'allow' } }, Worker: {} } })
    const urgent = { priority: 'urgent', content: 'stop' }
    expect(await engine.say('Worker', 'send_message', { to: 'Master', ...urgent })).toMatchObject({
      status: 'blocked',
    })
    expect(await engine.say('Master', 'send_message', { to: 'Worker', ...urgent })).toMatchObject({
      status: 'delivered',
    })
    for (const action of [
      'spawn_agent',
      'terminate_agent',
      'reset_session',
      'pause_session',
      'resume_session',
    ]) {
      expect(await engine.say('Worker', 'request_action', { action, target: 'Master' })).toMatchObject({
        status: 'blocked',
      })
    }
  })

  it('lets an agent read only its own mailbox, unless it was granted more (C14)', async () => {
    engine = await openTestEngine({
      agents: { Master: { permissions: { read_other_mailbox: 'allow' } }, Worker: {} },
    })
    const forbidden = { status: 'error', code: 'FORBIDDEN' }
    expect(await engine.say('Worker', 'query_mailbox', { agent: 'Master' })).toMatchObject(forbidden)
    expect(await engine.say('Worker', 'mailbox_check', { agent: 'Master' })).toMatchObject(forbidden)
    expect(await engine.say('Worker', 'update_status', { agent: 'Master', status: 'idle' })).toMatchObject(
      forbidden,
    )
    expect(engine.types().filter((type) => type === 'security.forbidden')).toHaveLength(3)
    expect(await engine.say('Worker', 'query_mailbox', { agent: 'worker' })).toMatchObject({ status: 'ok' })
    expect(await engine.say('Master', 'query_mailbox', { agent: 'Worker' })).toMatchObject({ status: 'ok' })
    // The permission is to read, not to take.
    expect(await engine.say('Master', 'mailbox_check', { agent: 'Worker' })).toMatchObject(forbidden)
    expect(await engine.say('Master', 'acknowledge', { agent: 'Worker', ids: 'msg_1' })).toMatchObject(
      forbidden,
    )
  })

  it('applies reloaded rules at once', async () => {
    engine = await openTestEngine(TEAM)
    const { defineConfig } = await import('../../src/config/config.ts')
    await engine.reload(defineConfig({ ...TEAM, rules: { preset: 'isolated' } }, { env: {} }))
    expect(await engine.say('Master', 'send_message', { to: 'Worker', content: 'x' })).toMatchObject({
      status: 'blocked',
    })
  })
})

describe('rates', () => {
  it('limits the entries of a flood of denied commands, and still records a forgery', async () => {
    engine = await openTestEngine(TEAM)
    for (let index = 0; index < 100; index++)
      await engine.say('Worker', 'send_message', { to: 'Worker', content: 'x' })
    expect(engine.types().filter((type) => type === 'command.blocked')).toHaveLength(10)
    for (let index = 0; index < 100; index++) await engine.say('Worker', 'nonsense')
    await engine.say('Worker', 'send_message', { from: 'Master', to: 'Monitor', content: 'x' })
    expect(engine.types()).toContain('security.sender_mismatch')
  })

  it('count a command once although its batch runs again', async () => {
    engine = await openTestEngine({
      ...TEAM,
      limits: { rate: 'off', pair_rate: { per_minute: 1, burst: 4 } },
    })
    const send = () => engine.say('Master', 'send_message', { to: 'Worker', content: 'x' })
    const failing = engine.store.write(() => {
      throw new Error('makes the batch run again')
    })
    const refused = expect(failing).rejects.toThrow('again')
    const receipts = await Promise.all([send(), send(), send(), send()])
    await refused
    expect(receipts.map((receipt) => receipt.status)).toEqual(Array(4).fill('delivered'))
  })

  it('count a flood of refusals instead of recording each', async () => {
    engine = await openTestEngine(TEAM)
    for (let index = 0; index < 200; index++) await engine.say('Worker', 'nonsense')
    expect(engine.types().filter((type) => type === 'command.refused')).toHaveLength(10)
    await engine.clock.advance(2000)
    await engine.say('Worker', 'nonsense')
    expect(engine.entries.at(-1)).toMatchObject({ type: 'command.refused', data: { unwritten: 190 } })
  })

  it('are off when the configuration says so, and never apply to the operator', async () => {
    engine = await openTestEngine({ ...TEAM, ...NO_RATE })
    const receipts = await Promise.all(
      Array.from({ length: 60 }, () => engine.say('Master', 'send_message', { to: 'Worker', content: 'x' })),
    )
    expect(receipts.every((receipt) => receipt.status === 'delivered')).toBe(true)
    await engine.close()
    engine = await openTestEngine(TEAM)
    for (let index = 0; index < 40; index++) {
      expect(await engine.handle(OPERATOR, { type: 'list_agents', fields: {} })).toMatchObject({
        status: 'ok',
      })
    }
  })
})
