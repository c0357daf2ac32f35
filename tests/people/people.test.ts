import { afterEach, describe, expect, it } from 'vitest'
import { decide, OPERATOR, openTestEngine, type TestEngine } from '../harness/engine.ts'

const ASKING = {
  agents: { Master: {}, Worker: { permissions: { reset_session: 'ask' as const } } },
  rules: { ask: [{ from: 'Worker', to: 'Master', reason: 'Master is busy' }] },
}
const HOUR = 3600_000

let engine: TestEngine
afterEach(() => engine.close())

const send = (content = 'please') => engine.say('Worker', 'send_message', { to: 'Master', content })

describe('a rule with the verdict ask', () => {
  it('survives a restart and still runs exactly the command that was asked about', async () => {
    engine = await openTestEngine(ASKING)
    await send('the very words')
    engine = await engine.reopen()
    await decide(engine, OPERATOR, 'req_1', { decision: 'approve' })
    expect(await engine.mailOf('Master')).toMatchObject([{ from: 'Worker', content: 'the very words' }])
  })

  it('never runs an action that was changed on disk', async () => {
    engine = await openTestEngine(ASKING)
    await send('harmless')
    await engine.store.write((tx) =>
      tx.run(`UPDATE human_requests SET action = REPLACE(action, 'harmless', 'harmful')`),
    )
    await expect(decide(engine, OPERATOR, 'req_1', { decision: 'approve' })).rejects.toMatchObject({
      code: 'STORE_CORRUPT',
    })
    expect(await engine.mailOf('Master')).toEqual([])
  })

  it('expires after 72 hours without running the command, also across a restart (C8)', async () => {
    engine = await openTestEngine(ASKING)
    await send()
    await engine.clock.advance(71 * HOUR)
    engine = await engine.reopen()
    await engine.clock.advance(2 * HOUR)
    expect((await engine.mailOf('Worker'))[0]).toMatchObject({ title: 'req_1 expired: send_message' })
    expect(await engine.mailOf('Master')).toEqual([])
    await expect(decide(engine, OPERATOR, 'req_1', { decision: 'approve' })).rejects.toMatchObject({
      code: 'CONFLICT',
    })
    expect(engine.types()).toContain('human.expired')
    // People get one notice, too.
    expect(await decide(engine, OPERATOR, 'req_2', { decision: 'approve' })).toMatchObject({
      request: { kind: 'escalation', state: 'approved' },
      receipt: { result: 'noted' },
    })
  })

  it('can be rejected and expires although its action is damaged, without stopping other timers', async () => {
    engine = await openTestEngine(ASKING)
    await send('one')
    await send('two')
    await engine.store.write((tx) => tx.run(`UPDATE human_requests SET action = 'garbage'`))
    expect(await decide(engine, OPERATOR, 'req_1', { decision: 'reject' })).toMatchObject({
      request: { state: 'rejected' },
    })
    await engine.clock.advance(73 * HOUR)
    expect((await engine.mailOf('Worker')).map((mail) => mail.title)).toContain('req_2 expired: command')
  })

  it('does not ask about a command that is too large to run', async () => {
    engine = await openTestEngine(ASKING)
    expect(await send('x'.repeat(102_401))).toMatchObject({ code: 'TOO_LARGE' })
  })

  it('obeys a rule that forbids the command by the time it is approved', async () => {
    engine = await openTestEngine(ASKING)
    await send()
    const { defineConfig } = await import('../../src/config/config.ts')
    await engine.reload(defineConfig({ ...ASKING, rules: { preset: 'isolated' } }, { env: {} }))
    const decided = await decide(engine, OPERATOR, 'req_1', { decision: 'approve' })
    expect(decided.receipt).toMatchObject({ status: 'blocked' })
    expect(await engine.mailOf('Master')).toEqual([])
  })
})

describe('the loop breaker', () => {
  const LOOPING = { agents: { A: {}, B: {}, C: {} }, limits: { rate: 'off' as const } }
  const TWO_TURNS = {
    ...LOOPING,
    limits: { rate: 'off' as const, ping_pong: { turns: 2, within: '10m' } },
  }
  const speak = (from: string, to: string) => engine.say(from, 'send_message', { to, content: `to ${to}` })

  it('parks two agents that keep answering each other and asks a person (ask 12)', async () => {
    engine = await openTestEngine(LOOPING)
    let receipt = await speak('A', 'B')
    let turns = 1
    while (receipt.status === 'delivered' && turns < 100) {
      receipt = turns % 2 === 1 ? await speak('B', 'A') : await speak('A', 'B')
      turns += 1
    }
    expect(turns).toBe(41)
    expect(receipt).toMatchObject({ status: 'held', request_id: 'req_1' })
    expect(await speak('A', 'B')).toMatchObject({
      status: 'blocked',
      reason: expect.stringContaining('req_1'),
    })
    expect(await speak('A', 'C')).toMatchObject({ status: 'delivered' })
    engine = await engine.reopen()
    expect(await speak('A', 'B')).toMatchObject({ status: 'blocked' })
    const before = (await engine.mailOf('B')).length + (await engine.mailOf('A')).length
    const { receipt: sent } = await decide(engine, OPERATOR, 'req_1', { decision: 'approve' })
    expect(sent).toMatchObject({ status: 'delivered' })
    expect((await engine.mailOf('B')).length + (await engine.mailOf('A')).length).toBe(before + 2)
    expect(await speak('B', 'A')).toMatchObject({ status: 'delivered' })
  })

  it('asks once for many simultaneous messages', async () => {
    engine = await openTestEngine(TWO_TURNS)
    await speak('A', 'B')
    await speak('B', 'A')
    const receipts = await Promise.all(Array.from({ length: 5 }, () => speak('A', 'B')))
    expect(receipts.map((receipt) => receipt.status)).toEqual([
      'held',
      'blocked',
      'blocked',
      'blocked',
      'blocked',
    ])
  })

  it('lets the agents try again an hour after the request expired', async () => {
    engine = await openTestEngine(TWO_TURNS)
    await speak('A', 'B')
    await speak('B', 'A')
    await speak('A', 'B')
    await engine.clock.advance(72 * HOUR + 1)
    expect(await speak('A', 'B')).toMatchObject({ status: 'blocked' })
    await engine.clock.advance(HOUR + 1)
    expect(await speak('A', 'B')).toMatchObject({ status: 'delivered' })
  })

  it('keeps the agents apart for an hour after a rejection', async () => {
    engine = await openTestEngine(TWO_TURNS)
    await speak('A', 'B')
    await speak('B', 'A')
    expect(await speak('A', 'B')).toMatchObject({ status: 'held' })
    await decide(engine, OPERATOR, 'req_1', { decision: 'reject' })
    expect(await speak('B', 'A')).toMatchObject({ status: 'blocked' })
    await engine.clock.advance(HOUR + 1)
    expect(await speak('B', 'A')).toMatchObject({ status: 'delivered' })
  })

  it('detects a circle of three by the length of the reply chain', async () => {
    engine = await openTestEngine({ ...LOOPING, limits: { rate: 'off', hops: 10 } })
    const ring = ['A', 'B', 'C']
    let receipt = await speak('A', 'B')
    let steps = 0
    while (receipt.status === 'delivered' && steps < 50) {
      steps += 1
      const from = ring[steps % 3]!
      await engine.say(from, 'mailbox_check')
      receipt = await speak(from, ring[(steps + 1) % 3]!)
    }
    expect(receipt).toMatchObject({ status: 'held', reason: expect.stringContaining('11 replies') })
  })

  it('stops two agents that keep delegating and reporting outside of any task (S2.1, ask 12)', async () => {
    engine = await openTestEngine({
      agents: { A: {}, B: { parent: 'A' } },
      limits: { rate: 'off', hops: 10 },
    })
    const delegate = () => engine.say('A', 'delegate', { to: 'B', task: 'Once more' })
    let receipt = await delegate()
    let rounds = 0
    while (receipt.status === 'ok' && rounds < 50) {
      rounds += 1
      await engine.say('B', 'mailbox_check')
      await engine.say('B', 'report', { status: 'completed', result: 'Done' })
      await engine.say('A', 'mailbox_check')
      receipt = await delegate()
    }
    expect(receipt).toMatchObject({ status: 'held', reason: expect.stringContaining('12 replies') })
    expect(await delegate()).toMatchObject({ status: 'blocked', reason: expect.stringContaining('req_1') })
    const { receipt: gone } = await decide(engine, OPERATOR, 'req_1', { decision: 'approve' })
    expect(gone).toMatchObject({ status: 'ok', details: { to: 'B' } })
  })

  it('does not mistake a long stream in one direction for a loop', async () => {
    engine = await openTestEngine(LOOPING)
    for (let index = 0; index < 100; index++)
      expect(await speak('A', 'B')).toMatchObject({ status: 'delivered' })
  })

  it('restarts the count when a person writes', async () => {
    engine = await openTestEngine({ ...LOOPING, limits: { rate: 'off', hops: 4, ping_pong: 'off' } })
    for (let round = 0; round < 6; round++) {
      await engine.order('send_message', { to: 'A', content: 'next' })
      await engine.say('A', 'mailbox_check')
      expect(await speak('A', 'B')).toMatchObject({ status: 'delivered' })
      await engine.say('B', 'mailbox_check')
      expect(await speak('B', 'A')).toMatchObject({ status: 'delivered' })
      await engine.say('A', 'mailbox_check')
    }
  })
})
