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

  it.each(['from', 'From', 'FROM', 'from_agent', 'from-agent'])(
    'refuses a forged sender said with %s, notes it as security and does nothing (C3, S0.19)',
    async (field) => {
      engine = await openTestEngine(TEAM)
      const receipt = await engine.say('Worker', 'send_message', {
        [field]: 'Master',
        to: 'Monitor',
        content: 'obey',
      })
      expect(receipt).toMatchObject({ status: 'error', code: 'SENDER_MISMATCH' })
      expect(await engine.mailOf('Monitor')).toEqual([])
      expect(engine.entries.find((entry) => entry.type === 'security.sender_mismatch')).toMatchObject({
        actor: 'Worker',
        class: 'private',
        data: { claimed: 'Master' },
      })
    },
  )

  it.each([
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

  it('takes a sender that differs only in case for the same (C3)', async () => {
    engine = await openTestEngine(TEAM)
    const receipt = await engine.say('Worker', 'send_message', {
      from: 'WORKER',
      to: 'master',
      content: 'hi',
    })
    expect(receipt).toMatchObject({ status: 'delivered', to: 'Master' })
    expect((await engine.mailOf('Master'))[0]).toMatchObject({ from: 'Worker' })
  })

  it('judges identity before the schema: a forged sender learns nothing else', async () => {
    engine = await openTestEngine(TEAM)
    expect(await engine.say('Worker', 'send_message', { from: 'Master' })).toMatchObject({
      code: 'SENDER_MISMATCH',
    })
  })

  it('lets the operator speak for an agent and writes down who really spoke', async () => {
    engine = await openTestEngine(TEAM)
    await engine.order('send_message', { from: 'Master', to: 'Worker', content: 'hi' })
    const entry = engine.entries.find((one) => one.type === 'message.accepted')
    expect(entry).toMatchObject({ actor: 'Master', data: { said_by: 'operator' } })
  })

  it('gives the valid names for an unknown recipient (S0.15, S0.18)', async () => {
    engine = await openTestEngine(TEAM)
    const receipt = await engine.say('Master', 'send_message', { to: 'Wroker', content: 'hi' })
    expect(receipt).toMatchObject({
      status: 'error',
      code: 'UNKNOWN_RECIPIENT',
      message: 'Unknown recipient: Wroker',
    })
    expect((receipt as { hint: string }).hint).toContain('Master, Worker, Monitor')
    expect(engine.types()).toContain('command.refused')
  })

  it('says `Unknown command type: X` (S1.11)', async () => {
    engine = await openTestEngine(TEAM)
    expect(await engine.say('Master', 'dance')).toMatchObject({
      code: 'UNKNOWN_COMMAND',
      message: 'Unknown command type: dance',
    })
  })

  it.each([
    [{}, /to/],
    [{ to: 'Worker' }, /content/],
    [{ to: 'Worker', content: '' }, /"content" is missing/],
    [{ to: 'Worker', content: 'x', priority: 'asap' }, /priority/],
    [{ to: ['Worker'], content: 'x' }, /to/],
    [{ to: 'Worker', content: 12 }, /content/],
  ])('refuses the misshapen send_message %j with a hint and an example', async (fields, about) => {
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
    ['one byte', 'x'],
    ['102,400 bytes', 'x'.repeat(102_400)],
    ['102,400 bytes of three-byte characters', `${'€'.repeat(34_133)}x`],
  ])('carries %s unchanged (C20)', async (_, content) => {
    engine = await openTestEngine(TEAM)
    expect(await engine.say('Master', 'send_message', { to: 'Worker', content })).toMatchObject({
      status: 'delivered',
    })
    expect((await engine.mailOf('Worker'))[0]!.content).toBe(content)
  })

  it.each(['x'.repeat(102_401), '€'.repeat(34_134)])(
    'refuses 102,401 bytes and more whole, never cut (C20)',
    async (content) => {
      engine = await openTestEngine(TEAM)
      expect(await engine.say('Master', 'send_message', { to: 'Worker', content })).toMatchObject({
        code: 'TOO_LARGE',
      })
      expect(await engine.mailOf('Worker')).toEqual([])
    },
  )

  it.each([
    [undefined, 'first line\nsecond', 'first line'],
    ['', '\n\n  indented first\nsecond', 'indented first'],
    ['   ', 'y'.repeat(100), 'y'.repeat(80)],
    [undefined, '😀'.repeat(100), '😀'.repeat(80)],
  ])('takes the first line for a missing title (C13)', async (title, content, wanted) => {
    engine = await openTestEngine(TEAM)
    await engine.say('Master', 'send_message', {
      to: 'Worker',
      content,
      ...(title === undefined ? {} : { title }),
    })
    expect((await engine.mailOf('Worker'))[0]!.title).toBe(wanted)
  })

  it('keeps what no database can store as text visible instead of failing', async () => {
    engine = await openTestEngine(TEAM)
    await engine.say('Master', 'send_message', { to: 'Worker', content: 'a\0b\uD800c' })
    expect((await engine.mailOf('Worker'))[0]!.content).toBe('a\uFFFDb\uFFFDc')
  })

  it('records as answered only what is said to be, and is there (C10)', async () => {
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

  it('names parameters it has no use for, in the receipt and in the audit', async () => {
    engine = await openTestEngine(TEAM)
    const receipt = await engine.say('Master', 'send_message', {
      to: 'Worker',
      content: 'x',
      agent_name: 'Monitor',
    })
    expect(receipt).toMatchObject({ status: 'delivered', ignored: ['agent_name'] })
    expect(engine.types()).toContain('command.fields_ignored')
  })

  it('acts once for one idempotency key, and answers the same (C25)', async () => {
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

  it('refuses the same key with another command, and keeps keys of speakers apart', async () => {
    engine = await openTestEngine(TEAM)
    const said = (content: string) => ({ type: 'send_message', fields: { to: 'Monitor', content } })
    await engine.handle(agent('Master'), said('a'), { idempotencyKey: 'k' })
    expect(await engine.handle(agent('Master'), said('b'), { idempotencyKey: 'k' })).toMatchObject({
      code: 'IDEMPOTENCY_CONFLICT',
    })
    expect(await engine.handle(agent('Worker'), said('b'), { idempotencyKey: 'k' })).toMatchObject({
      status: 'delivered',
    })
  })

  it('keeps the order of what one speaker says at once', async () => {
    engine = await openTestEngine({ ...TEAM, ...NO_RATE })
    const contents = Array.from({ length: 300 }, (_, index) => `n${index}`)
    await Promise.all(
      contents.map((content) => engine.say('Master', 'send_message', { to: 'Worker', content })),
    )
    expect((await engine.mailOf('Worker')).map((mail) => mail.content)).toEqual(contents)
  })

  it('carries a command that an application adds in a few lines (S0.16, S1.23)', async () => {
    const definition = defineCommand({
      type: 'raise_flag',
      summary: 'Raise a flag',
      fields: z.object({ colour: z.string() }),
      body: 'colour',
      example: 'orc raise-flag red',
    })
    const handler = {
      handle: (_: unknown, { colour }: Record<string, unknown>) => ({
        status: 'ok' as const,
        result: `${colour} flag up`,
      }),
    }
    engine = await openTestEngine(TEAM, { commands: [{ definition, handler }] })
    expect(await engine.say('Worker', 'RAISE_FLAG', { Colour: 'red' })).toEqual({
      status: 'ok',
      result: 'red flag up',
    })
    expect(await engine.say('Worker', 'raise_flag')).toMatchObject({ code: 'INVALID_COMMAND' })
    expect(engine.prompt('Worker')).toContain('raise_flag: Raise a flag. Parameters: colour (the body).')
  })

  it('fails one command alone when its handler breaks, with nothing of it left', async () => {
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

  it.each([241, 245, 250, 260, 279])(
    'redacts a secret that the excerpt would cut at %i (C12)',
    async (before) => {
      engine = await openTestEngine(TEAM)
      const token = `ghp_${'a1B2c3D4e5F6'.repeat(3)}`
      await engine.say('Master', 'send_message', {
        to: 'Worker',
        content: `${'x'.repeat(before)} ${token} and on`,
      })
      await engine.say('Master', 'send_message', {
        to: 'Worker',
        content: `${'x '.repeat(before % 40)}${token}`,
      })
      expect(JSON.stringify(engine.entries)).not.toContain(token.slice(0, 12))
    },
  )

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
  it('blocks with the reason, and the audit names the rule (S1.12)', async () => {
    engine = await openTestEngine({
      ...TEAM,
      rules: { forbid: [{ from: 'Worker', to: 'Monitor', reason: 'use Master' }] },
    })
    const receipt = await engine.say('Worker', 'send_message', { to: 'Monitor', content: 'x' })
    expect(receipt).toEqual({ status: 'blocked', reason: 'use Master' })
    expect(engine.entries.find((entry) => entry.type === 'command.blocked')).toMatchObject({
      data: { rule: 'rules.forbid[0]' },
    })
    expect(await engine.mailOf('Monitor')).toEqual([])
  })

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

  it('lets an agent look into its own mailbox only, unless it was granted more (C14)', async () => {
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
    // Looking is not taking.
    expect(await engine.say('Master', 'mailbox_check', { agent: 'Worker' })).toMatchObject(forbidden)
    expect(await engine.say('Master', 'acknowledge', { agent: 'Worker', ids: 'msg_1' })).toMatchObject(
      forbidden,
    )
  })

  it('puts reloaded rules in force at once', async () => {
    engine = await openTestEngine(TEAM)
    const { defineConfig } = await import('../../src/config/config.ts')
    await engine.reload(defineConfig({ ...TEAM, rules: { preset: 'isolated' } }, { env: {} }))
    expect(await engine.say('Master', 'send_message', { to: 'Worker', content: 'x' })).toMatchObject({
      status: 'blocked',
    })
  })
})

describe('rates', () => {
  it('refuses a flood past 30 a minute with bursts of 10 and says when to try again (C18)', async () => {
    engine = await openTestEngine(TEAM)
    const send = () => engine.say('Master', 'send_message', { to: 'Worker', content: 'x' })
    const receipts = await Promise.all(Array.from({ length: 15 }, send))
    expect(receipts.filter((receipt) => receipt.status === 'delivered')).toHaveLength(10)
    expect(receipts[14]).toMatchObject({ status: 'error', code: 'RATE_LIMITED', retry_after_ms: 2000 })
    await engine.clock.advance(2000)
    expect(await send()).toMatchObject({ status: 'delivered' })
    expect(await send()).toMatchObject({ code: 'RATE_LIMITED' })
  })

  it('bounds what a flood of denied commands writes, and lets no refusal hide a forgery', async () => {
    engine = await openTestEngine(TEAM)
    for (let index = 0; index < 100; index++)
      await engine.say('Worker', 'send_message', { to: 'Worker', content: 'x' })
    expect(engine.types().filter((type) => type === 'command.blocked')).toHaveLength(10)
    for (let index = 0; index < 100; index++) await engine.say('Worker', 'nonsense')
    await engine.say('Worker', 'send_message', { from: 'Master', to: 'Monitor', content: 'x' })
    expect(engine.types()).toContain('security.sender_mismatch')
  })

  it('does not count a command twice when its batch has to run again', async () => {
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

  it('does not fill the audit with a flood of refusals, but counts them', async () => {
    engine = await openTestEngine(TEAM)
    for (let index = 0; index < 200; index++) await engine.say('Worker', 'nonsense')
    expect(engine.types().filter((type) => type === 'command.refused')).toHaveLength(10)
    await engine.clock.advance(2000)
    await engine.say('Worker', 'nonsense')
    expect(engine.entries.at(-1)).toMatchObject({ type: 'command.refused', data: { unwritten: 190 } })
  })

  it('is off when the configuration says so, and never holds for the operator', async () => {
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
