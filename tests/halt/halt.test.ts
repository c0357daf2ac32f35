import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { AppError } from '../../src/base/errors.ts'
import type { DeliveryResult } from '../../src/runtimes/runtime.ts'
import { agent, decide, OPERATOR } from '../harness/engine.ts'
import { openTeam, type TaskTeam } from '../tasks/harness.ts'

let team: TaskTeam
afterEach(() => team.close())

const open = async () => {
  team = await openTeam({ Lead: {}, Worker: { parent: 'Lead' } }, { limits: { rate: 'off' } })
  await team.rest('Lead', 'Worker')
}
const stop = async (reason?: string) => {
  const stopping = team.halt.stop('operator', reason)
  await team.settle()
  return await stopping
}
const go = async () => {
  const going = team.halt.go('operator')
  await team.settle()
  const gone = await going
  await team.settle()
  return gone
}
const delegate = async () => {
  await team.orders('delegate', { to: 'Lead', task: 'build it' })
  return 'task_1'
}
/** Halts while a message to Worker is being delivered; `under` settles that delivery. */
const stopDuringDelivery = async () => {
  await open()
  const under = Promise.withResolvers<DeliveryResult>()
  team.puppets.of('Worker').arrival = under.promise
  await team.orders('send_message', { to: 'Worker', content: 'the first' })
  const stopping = team.halt.stop('operator', undefined)
  await team.settle()
  return { under, stopping }
}
const deliveries = async (name: string) => (await team.mailOf(name)).map(({ delivery }) => delivery)

describe('a halt (issue 4, §4)', () => {
  it('interrupts busy agents, delivers nothing, and keeps new messages for later', async () => {
    await open()
    await team.orders('send_message', { to: 'Worker', content: 'the first' })
    expect(team.puppets.of('Worker').interrupts).toBe(0)
    const { already, interrupts, halted } = await stop('they run wild')
    expect(already).toBe(false)
    expect(interrupts).toEqual([{ agent: 'Worker', stopped: true, evidence: 'interrupted' }])
    expect(halted).toMatchObject({ by: 'operator', reason: 'they run wild', at: team.clock.now() })
    expect(team.puppets.of('Worker').interrupts).toBe(1)
    await team.orders('send_message', { to: 'Worker', content: 'two', priority: 'urgent' })
    await team.orders('send_message', { to: 'Lead', content: 'three' })
    await team.clock.advance(10 * 60_000)
    expect([team.turns('Worker'), team.turns('Lead')]).toEqual([1, 0])
    expect(await deliveries('Lead')).toEqual(['queued'])
    expect(team.entries.find(({ type }) => type === 'team.halted')).toMatchObject({
      actor: 'operator',
      data: { reason: 'they run wild' },
    })
    const gone = await go()
    expect(gone).toMatchObject({ lastedMs: 10 * 60_000, told: ['Worker'] })
    expect(team.turn('Worker')).toContain('two')
    expect(team.turn('Worker')).toContain('continue where you left off')
    expect(team.turn('Lead')).toContain('three')
    expect(team.turn('Lead')).not.toContain('Go on')
  })

  it('interrupts an agent that began a turn while the previous halt ended', async () => {
    await open()
    const stopping = team.halt.stop('operator', undefined)
    team.haltState.end()
    team.puppets.of('Worker').become('busy')
    await team.settle()
    await stopping
    expect(team.halt.current()).toMatchObject({ by: 'operator' })
    expect(team.puppets.of('Worker').interrupts).toBe(1)
    await go()
  })

  it('refuses commands of agents except reads, and notifies these agents when it ends', async () => {
    await open()
    await stop('a look first')
    const refused = await team.says('Worker', 'send_message', { to: 'Lead', content: 'hello' })
    expect(refused).toMatchObject({ status: 'error', code: 'HALTED' })
    expect(JSON.stringify(refused)).toContain('a look first')
    for (const [type, fields] of [
      ['delegate', { to: 'Worker', task: 'x' }],
      ['mailbox_check', {}],
      ['request_user_input', { question: 'may I?' }],
    ] as const) {
      expect(await team.says('Lead', type, fields)).toMatchObject({ code: 'HALTED' })
    }
    expect(await team.says('Lead', 'query_mailbox')).toMatchObject({ status: 'ok' })
    expect(await team.says('Lead', 'update_status', { status: 'idle' })).toMatchObject({ status: 'ok' })
    expect(await team.mailOf('Lead')).toEqual([])
    expect((await go())!.told).toEqual(['Lead', 'Worker'])
    expect(await team.says('Worker', 'send_message', { to: 'Lead', content: 'hello' })).toMatchObject({
      status: 'delivered',
    })
  })

  it('answers a repetition of an earlier command with its receipt', async () => {
    await open()
    const said = { type: 'send_message', fields: { to: 'Lead', content: 'hello' } }
    const first = await team.handle(agent('Worker'), said, { idempotencyKey: 'k' })
    await stop()
    expect(await team.handle(agent('Worker'), said, { idempotencyKey: 'k' })).toEqual(first)
  })

  it('stops all timers, which continue with the time they had left (C8)', async () => {
    await open()
    const id = await delegate()
    await team.clock.advance(60_000)
    const { due } = await team.task(id)
    expect(due!.kind).toBe('deadline')
    const left = due!.at - team.clock.now()
    await stop()
    await team.clock.advance(48 * 3600_000)
    expect(await team.task(id)).toMatchObject({ state: 'executing', attempt: 1, due })
    await go()
    expect((await team.task(id)).due!.at - team.clock.now()).toBe(left)
    await team.clock.advance(left - 1)
    expect((await team.task(id)).attempt).toBe(1)
    await team.clock.advance(2)
    expect((await team.task(id)).attempt).toBe(2)
  })

  it('causes no reminder for the turn that it interrupted, but one for the next turn', async () => {
    await open()
    const id = await delegate()
    await stop()
    expect(team.puppets.of('Lead').interrupts).toBe(1)
    await team.clock.advance(1000)
    expect((await team.task(id)).reminders).toBe(0)
    await go()
    expect(team.turn('Lead')).toContain('continue where you left off')
    expect((await team.task(id)).reminders).toBe(0)
    await team.ends('Lead', 'I forgot')
    expect((await team.task(id)).reminders).toBe(1)
  })

  it('leaves its whole time to a task that is delegated during the halt', async () => {
    await open()
    await stop()
    await team.clock.advance(3600_000)
    await team.orders('delegate', { to: 'Lead', task: 'later' })
    await team.clock.advance(3600_000)
    expect(await team.task('task_1')).toMatchObject({ state: 'pending', attempt: 1 })
    expect(team.turns('Lead')).toBe(0)
    await go()
    expect(team.turn('Lead')).toContain('later')
    expect((await team.task('task_1')).attempt).toBe(1)
  })

  it('starts no agent until it ends', async () => {
    await open()
    await team.orders('request_action', { action: 'terminate_agent', target: 'Worker' })
    await stop()
    const spawned = await team.orders('request_action', { action: 'spawn_agent', target: 'Worker' })
    expect(spawned).toMatchObject({ status: 'error', code: 'CONFLICT' })
    expect(team.puppets.started('Worker')).toBe(1)
    await go()
    await team.orders('request_action', { action: 'spawn_agent', target: 'Worker' })
    expect(team.puppets.started('Worker')).toBe(2)
  })

  it('does not start an agent afterwards that was stopped during the halt', async () => {
    await open()
    await team.sessions.stop('Worker')
    await stop()
    await team.sessions.start('Worker')
    await team.sessions.stop('Worker')
    await go()
    expect(team.puppets.started('Worker')).toBe(1)
  })

  it('refuses approvals, and accepts rejections', async () => {
    team = await openTeam(
      { Lead: { permissions: { terminate_agent: 'ask' } }, Worker: { parent: 'Lead' } },
      { limits: { rate: 'off' } },
    )
    await team.rest('Lead', 'Worker')
    const held = await team.says('Lead', 'request_action', { action: 'terminate_agent', target: 'Worker' })
    const { request_id: id } = held as { request_id: string }
    await stop()
    await expect(decide(team, OPERATOR, id, { decision: 'approve' })).rejects.toMatchObject({
      code: 'HALTED',
    })
    await decide(team, OPERATOR, id, { decision: 'reject' })
    await team.settle()
    expect(team.puppets.of('Worker').ended).toBeUndefined()
  })
})

describe('a halt during other work', () => {
  it('withdraws a delivery that has not begun, and repeats it once afterwards', async () => {
    const { under, stopping } = await stopDuringDelivery()
    expect(team.puppets.of('Worker').withdrawn).toEqual(['everything was stopped'])
    under.resolve({ state: 'queued', evidence: 'no longer wanted' })
    await team.settle()
    await stopping
    expect(await deliveries('Worker')).toEqual(['queued'])
    await team.clock.advance(60_000)
    expect(team.turns('Worker')).toBe(1)
    team.puppets.of('Worker').arrival = { state: 'submitted', evidence: 'taken' }
    await go()
    expect(team.turns('Worker')).toBe(2)
    expect(team.turn('Worker').match(/^\[ORCHUB MESSAGE msg_1\]/gm)).toHaveLength(1)
    expect((await deliveries('Worker'))[0]).toBe('submitted')
  })

  it('interrupts a turn that was being delivered, once it has begun', async () => {
    const { under, stopping } = await stopDuringDelivery()
    under.resolve({ state: 'submitted', evidence: 'it was too late' })
    await team.settle()
    expect((await stopping).interrupts).toEqual([{ agent: 'Worker', stopped: true, evidence: 'interrupted' }])
    expect(team.puppets.of('Worker').interrupts).toBe(1)
    await go()
    expect(team.turn('Worker')).not.toContain('the first')
    expect(team.turn('Worker')).toContain('continue where you left off')
  })

  it('ends a turn that waits at a dialog, and leaves a dialog outside of a turn alone', async () => {
    await open()
    team.puppets.of('Lead').become('initializing')
    for (const name of ['Lead', 'Worker']) team.puppets.of(name).become('waiting_input')
    await team.settle()
    expect((await stop()).interrupts).toEqual([])
    await go()
    team.puppets.of('Worker').become('busy')
    team.puppets.of('Worker').become('waiting_input')
    const { interrupts } = await stop()
    expect(interrupts).toEqual([{ agent: 'Worker', stopped: true, evidence: 'interrupted' }])
    expect((await go())?.told).toEqual(['Worker'])
  })

  it('does not interrupt a turn that a person begins at the terminal', async () => {
    await open()
    await stop()
    await team.clock.advance(60_000)
    team.puppets.of('Worker').become('busy')
    await team.settle()
    expect(team.puppets.of('Worker').interrupts).toBe(0)
  })

  it('that is requested twice keeps its first reason, and busy agents are interrupted again', async () => {
    await open()
    const [first, second] = await Promise.all([stop('first'), stop('second')])
    expect([first.already, second.already]).toEqual([false, true])
    expect(second.halted.reason).toBe('first')
    expect(team.types().filter((type) => type === 'team.halted')).toHaveLength(1)
    team.puppets.of('Worker').become('busy')
    expect((await stop()).interrupts).toMatchObject([{ agent: 'Worker', stopped: true }])
  })

  it('ends once although two people end it; ending no halt has no effect', async () => {
    await open()
    expect(await go()).toBeUndefined()
    await stop()
    const both = await Promise.all([team.halt.go('operator'), team.halt.go('operator')])
    await team.settle()
    expect(both.filter((one) => one !== undefined)).toHaveLength(1)
    expect(team.types().filter((type) => type === 'team.resumed')).toHaveLength(1)
    expect(await team.store.all('SELECT * FROM halt')).toEqual([])
  })

  it('releases held messages in order, before newer ones', async () => {
    team = await openTeam({ Lead: {}, Worker: { parent: 'Lead', deliver: 'single' } })
    await team.rest('Lead', 'Worker')
    const send = (content: string) => team.order('send_message', { to: 'Worker', content })
    await team.orders('send_message', { to: 'Worker', content: 'at work on this' })
    // Handed out, but not yet submitted when the halt begins.
    await send('before it')
    const { promise, resolve } = Promise.withResolvers<DeliveryResult>()
    team.puppets.of('Worker').arrival = promise
    team.puppets.of('Worker').become('idle')
    await team.settle()
    const stopping = team.halt.stop('operator', undefined)
    resolve({ state: 'queued', evidence: 'it was withdrawn' })
    await team.settle()
    await stopping
    team.puppets.of('Worker').arrival = { state: 'submitted', evidence: 'the puppet nodded' }
    await send('during it, one')
    await send('during it, two')
    // In the same batch as the end of the halt, and right after it.
    const going = Promise.all([send('just before its end'), team.halt.go('operator'), send('just after it')])
    await team.settle()
    await going
    await send('later')
    const heard: string[] = []
    for (let turn = 0; turn < 6; turn++) {
      await team.settle()
      heard.push(/\n\n?([a-z][a-z, ]+)\n/.exec(team.turn('Worker'))?.[1] ?? team.turn('Worker'))
      await team.ends('Worker')
    }
    expect(heard).toEqual([
      'before it',
      'during it, one',
      'during it, two',
      'just before its end',
      'just after it',
      'later',
    ])
  })

  it('stays in force if it is requested again while it ends', async () => {
    await open()
    await stop('first')
    const going = team.halt.go('operator').catch((error: unknown) => error)
    await stop('wait')
    expect(await going).toMatchObject({ code: 'CONFLICT' })
    expect(team.halt.current()).toMatchObject({ reason: 'first' })
    expect(await go()).toBeDefined()
    expect(team.halt.current()).toBeUndefined()
  })

  it('survives a restart, and its notices come once afterwards', async () => {
    await open()
    const id = await delegate()
    await team.clock.advance(30_000)
    const left = (await team.task(id)).due!.at - team.clock.now()
    await stop('over night')
    team = await team.restarted()
    expect(team.halt.current()).toMatchObject({ by: 'operator', reason: 'over night' })
    expect(team.puppets.started('Lead')).toBe(1)
    await team.clock.advance(24 * 3600_000)
    expect(team.puppets.started('Lead')).toBe(1)
    expect(await team.task(id)).toMatchObject({ state: 'executing', attempt: 1 })
    expect(await team.says('Lead', 'report', { status: 'completed', result: 'x' })).toMatchObject({
      code: 'HALTED',
    })
    expect((await go())!.told).toEqual(['Lead'])
    expect(team.puppets.started('Lead')).toBe(2)
    await team.rest('Lead')
    const told = (await team.mailOf('Lead')).filter(({ title }) => title === 'Go on')
    expect(told).toHaveLength(1)
    expect((await team.task(id)).due!.at - team.clock.now()).toBeGreaterThanOrEqual(left)
    team = await team.restarted()
    expect(team.halt.current()).toBeUndefined()
    expect((await team.mailOf('Lead')).filter(({ title }) => title === 'Go on')).toHaveLength(1)
  })

  it('keeps receivers waiting until it ends', async () => {
    await open()
    await stop()
    await team.orders('send_message', { to: 'Other', content: 'x' })
    const gone = new AbortController()
    const waiting = team.mailboxes.waitForMail('Worker', {
      waitMs: 60_000,
      evidence: 'a test',
      signal: gone.signal,
    })
    await team.orders('send_message', { to: 'Worker', content: 'the first' })
    let got: unknown
    void waiting.then((mails) => (got = mails))
    await team.clock.advance(1000)
    expect(got).toBeUndefined()
    await go()
    expect(got === undefined ? team.turn('Worker') : JSON.stringify(got)).toContain('the first')
    gone.abort()
  })

  it('takes effect even if it cannot be stored, and says so', async () => {
    await open()
    const { write } = team.store
    team.store.write = () => Promise.reject(new AppError('STORE_FULL', 'The disk is full'))
    await expect(team.halt.stop('operator', 'x')).rejects.toMatchObject({ code: 'STORE_FULL' })
    team.store.write = write
    expect(await team.says('Worker', 'send_message', { to: 'Lead', content: 'x' })).toMatchObject({
      code: 'HALTED',
    })
    expect((await stop()).already).toBe(true)
    expect(team.types().filter((type) => type === 'team.halted')).toHaveLength(1)
    team = await team.restarted()
    expect(team.halt.current()).toMatchObject({ reason: 'x' })
    expect(await go()).toBeDefined()
  })

  it('interrupts a program that does not stop at most three times', async () => {
    await open()
    await team.orders('send_message', { to: 'Worker', content: 'work' })
    const session = team.sessions.session('Worker')!
    let tries = 0
    let atOnce = 0
    session.interrupt = async () => {
      tries += 1
      atOnce += 1
      await new Promise<void>((resolve) => team.clock.after(100, resolve))
      expect(atOnce).toBe(1)
      atOnce -= 1
      return { stopped: false, evidence: 'it goes on' }
    }
    const stopping = team.halt.stop('operator', undefined)
    const again = team.halt.stop('operator', undefined)
    await team.clock.advance(10_000)
    for (const { interrupts } of [await stopping, await again]) {
      expect(interrupts).toEqual([{ agent: 'Worker', stopped: false, evidence: 'it goes on' }])
    }
    expect(tries).toBe(3)
  })
})

describe('any order of events', () => {
  const step = fc.constantFrom('delegate', 'send', 'minute', 'end', 'stop', 'go', 'restart', 'report')

  it('starts nothing during a halt, and nothing is lost or duplicated', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async (steps) => {
        await open()
        let sent = 0
        const given: string[] = []
        const seen = new Set<object>()
        const look = () => {
          for (const name of ['Lead', 'Worker']) {
            if (team.puppets.started(name) === 0) continue
            for (const turn of team.puppets.of(name).turns) {
              if (!seen.has(turn)) given.push(...turn.ids)
              seen.add(turn)
            }
          }
        }
        const facts = async () => ({
          started: [team.puppets.started('Lead'), team.puppets.started('Worker')],
          given: given.length,
          tasks: (await team.store.all<{ document: string }>('SELECT document FROM tasks ORDER BY id')).map(
            ({ document }) => (({ attempt, reminders }) => [attempt, reminders])(JSON.parse(document)),
          ),
        })
        for (const what of [...steps, 'go', 'minute'] as const) {
          const halted = team.halt.current()
          const before = await facts()
          if (what === 'delegate') await team.orders('delegate', { to: 'Lead', task: 'do it' })
          if (what === 'send') await team.orders('send_message', { to: 'Worker', content: `m${++sent}` })
          if (what === 'minute') await team.clock.advance(60_000)
          if (what === 'end') for (const name of ['Lead', 'Worker']) await team.ends(name)
          if (what === 'stop') await stop()
          if (what === 'report') await team.says('Lead', 'report', { status: 'completed', result: 'done' })
          if (what === 'restart') {
            look()
            team = await team.restarted()
          }
          if (what === 'go') {
            await go()
            for (const name of ['Lead', 'Worker']) {
              if (team.sessions.session(name)?.state === 'initializing') await team.rest(name)
            }
          }
          look()
          const after = await facts()
          if (halted === undefined || what === 'go') continue
          expect(after.started).toEqual(before.started)
          expect(after.given).toBe(before.given)
          expect(after.tasks.slice(0, before.tasks.length)).toEqual(before.tasks)
        }
        await team.ends('Worker')
        await team.ends('Worker')
        look()
        const rows = await team.store.all<{ message: number; attempts: number; state: string }>(
          `SELECT message, attempts, state FROM deliveries WHERE recipient = 'Worker'`,
        )
        expect(rows.filter(({ state }) => state === 'queued')).toEqual([])
        await team.close()
      }),
      { numRuns: 25 },
    )
    await open()
  }, 60_000)
})
