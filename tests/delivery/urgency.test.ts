import { describe, expect, it } from 'vitest'
import type { DeliveryResult } from '../../src/runtimes/runtime.ts'
import { createWorkerStage, TEAM } from '../runs/worker-stage.ts'

const stage = createWorkerStage()
const { open, settle, worker, send, deliveries, become, given, order } = stage
const urgent = (title: string) => send(title, { priority: 'urgent' })

describe('an urgent message', () => {
  it("that arrives while another is being handed over interrupts that one's turn (C2, ask 11)", async () => {
    await open()
    worker().become('idle')
    const arrival = Promise.withResolvers<DeliveryResult>()
    worker().arrival = arrival.promise
    await send('One')
    await settle()
    await urgent('Stop')
    await settle()
    expect([given(), worker().interrupts]).toEqual([[['msg_1']], 0])
    arrival.resolve({ state: 'submitted', evidence: 'seen' })
    await settle()
    expect([given(), worker().interrupts]).toEqual([[['msg_1'], ['msg_2']], 1])
    expect(await deliveries()).toEqual(['submitted', 'submitted'])
  })

  it("that arrives while a dialog is open interrupts the dialog's turn and withdraws its request", async () => {
    await open()
    worker().become('busy')
    worker().become('waiting_input')
    await stage.engine.clock.advance(2000)
    const openRequests = async () =>
      (await stage.engine.store.all(`SELECT id FROM human_requests WHERE state = 'open'`)).length
    expect(await openRequests()).toBe(1)
    await urgent('Stop')
    await settle()
    expect([given(), worker().interrupts, await openRequests()]).toEqual([[['msg_1']], 1, 0])
  })

  it('leaves a dialog outside of a turn alone, and interrupts the next turn', async () => {
    await open()
    worker().become('waiting_input')
    await urgent('Stop')
    await stage.engine.clock.advance(60_000)
    expect(worker().interrupts).toBe(0)
    await become('busy')
    expect([given(), worker().interrupts]).toEqual([[['msg_1']], 1])
  })

  it.each([
    ['in the middle of a turn', ['idle', 'busy', 'waiting_input'], 1],
    ['outside of a turn', ['idle', 'busy', 'idle', 'waiting_input'], 0],
  ] as const)(
    'knows of a dialog that is found after a restart of the service whether it is %s',
    async (_, states, interrupts) => {
      await open()
      for (const state of states) await become(state)
      for (const restart of [1, 2]) {
        await stage.reopen()
        if (restart === 2) worker().become('waiting_input')
      }
      await urgent('Stop')
      await settle()
      expect(worker().interrupts).toBe(interrupts)
    },
  )

  it('leaves a dialog alone that opens after the turn in which the agent was found', async () => {
    await open()
    worker().become('idle')
    await become('busy')
    await stage.reopen()
    for (const state of ['busy', 'idle', 'unknown', 'waiting_input'] as const) worker().become(state)
    await urgent('Stop')
    await settle()
    expect(worker().interrupts).toBe(0)
  })

  it('interrupts at a dialog that the agent reached while the service was down', async () => {
    await open()
    worker().become('idle')
    await become('busy')
    await stage.reopen()
    worker().become('waiting_input')
    await urgent('Stop')
    await settle()
    expect([given(), worker().interrupts]).toEqual([[['msg_1']], 1])
  })

  it('leaves a dialog alone at the start of a program that resumes a conversation', async () => {
    await open()
    worker().become('idle')
    await become('busy')
    stage.puppets.isResumed = true
    await stage.reopen()
    worker().become('waiting_input')
    await urgent('Stop')
    await settle()
    expect(worker().interrupts).toBe(0)
  })

  it("interrupts a person's turn once, then waits while their draft blocks it (ask 4)", async () => {
    await open()
    worker().become('idle')
    worker().arrival = { state: 'queued', evidence: 'a draft stands in the input box' }
    await urgent('Stop')
    await stage.engine.clock.advance(60_000)
    for (const expected of [1, 1, 1]) {
      await become('busy')
      expect(worker().interrupts).toBe(expected)
      await stage.engine.clock.advance(60_000)
      worker().become('idle')
      await stage.engine.clock.advance(60_000)
    }
    worker().arrival = { state: 'submitted', evidence: 'seen' }
    await become('busy')
    worker().become('idle')
    await stage.engine.clock.advance(60_000)
    expect(await deliveries()).toEqual(['submitted'])
  })

  it('that arrived while the agent was paused interrupts its turn on resume (S1.24)', async () => {
    await open()
    worker().become('busy')
    await order('pause_session')
    await urgent('Stop')
    await stage.engine.clock.advance(60_000)
    expect(worker().interrupts).toBe(0)
    await order('resume_session')
    await settle()
    expect([given(), worker().interrupts]).toEqual([[['msg_1']], 1])
  })

  it('left by an earlier service interrupts the turn in which the agent is found', async () => {
    await open()
    worker().become('busy')
    await order('pause_session')
    await urgent('Stop')
    await stage.reopen()
    worker().become('busy')
    await order('resume_session')
    await settle()
    expect([given(), worker().interrupts]).toEqual([[['msg_1']], 1])
  })

  it('that was claimed when the agent turned busy interrupts that turn', async () => {
    await open()
    await become('idle')
    stage.engine.store.onCommit((entries) => {
      if (entries.some(({ type }) => type === 'message.accepted')) worker().become('busy')
    })
    await urgent('Stop')
    await settle()
    expect([given(), worker().interrupts]).toEqual([[['msg_1']], 1])
  })

  it('interrupts the turn of another urgent message once, then waits for it', async () => {
    const Worker = { ...TEAM.agents.Worker, deliver: 'single' as const }
    await open({ ...TEAM, agents: { ...TEAM.agents, Worker } })
    worker().become('idle')
    await urgent('One')
    await settle()
    // As a program does that takes an unanswered prompt back.
    const session = stage.engine.sessions.session('Worker')!
    const { interrupt } = session
    session.interrupt = async () => {
      worker().port.onEvidence(['msg_1'], 'queued', 'taken back')
      await new Promise<void>((resolve) => stage.engine.clock.after(10, resolve))
      return await interrupt()
    }
    await urgent('Two')
    await stage.engine.clock.advance(60_000)
    expect([given(), worker().interrupts]).toEqual([[['msg_1'], ['msg_1']], 1])
    await become('idle')
    expect([given().at(-1), worker().interrupts]).toEqual([['msg_2'], 1])
  })
})

describe('an interrupt', () => {
  it('is shared by all who request it at once, and each of them is recorded', async () => {
    await open({ ...TEAM, agents: { ...TEAM.agents, Other: {} } })
    worker().become('busy')
    const session = stage.engine.sessions.session('Worker')!
    const { interrupt } = session
    let tries = 0
    session.interrupt = async () => {
      tries += 1
      await new Promise<void>((resolve) => stage.engine.clock.after(100, resolve))
      return await interrupt()
    }
    await urgent('One')
    await stage.engine.say('Other', 'send_message', { to: 'Worker', content: 'stop', priority: 'urgent' })
    const byPerson = stage.engine.sessions.interrupt('Worker', 'operator')
    await stage.engine.clock.advance(1000)
    expect(tries).toBe(1)
    expect(await byPerson).toMatchObject({ stopped: true })
    const noted = stage.engine.entries.filter(({ type }) => type === 'session.interrupted')
    expect(noted.map(({ actor }) => actor).sort()).toEqual(['Master', 'Other', 'operator'])
    expect(given()).toEqual([['msg_1', 'msg_2']])
  })

  it('by a person ends a turn that waits at a dialog, and leaves a dialog outside of a turn alone', async () => {
    await open()
    const interrupt = () => stage.engine.sessions.interrupt('Worker', 'operator')
    worker().become('waiting_input')
    expect([stage.engine.sessions.isInTurn('Worker'), await interrupt()]).toEqual([false, undefined])
    worker().become('busy')
    worker().become('waiting_input')
    expect(stage.engine.sessions.isInTurn('Worker')).toBe(true)
    expect(await interrupt()).toMatchObject({ stopped: true })
    expect(worker().interrupts).toBe(1)
  })

  it('that is still pending holds back all deliveries, although the agent is idle', async () => {
    await open()
    worker().become('busy')
    const over = Promise.withResolvers<void>()
    const session = stage.engine.sessions.session('Worker')!
    session.interrupt = async () => {
      worker().become('idle')
      await over.promise
      return { stopped: true, evidence: 'its input box is clear' }
    }
    await urgent('Stop')
    await send('One')
    await settle()
    expect(given()).toEqual([])
    over.resolve()
    await settle()
    expect(given()).toEqual([['msg_1', 'msg_2']])
  })

  it('that fails in the runtime is recorded, and retried while the message waits', async () => {
    await open()
    worker().become('busy')
    const session = stage.engine.sessions.session('Worker')!
    const { interrupt } = session
    session.interrupt = async () => {
      session.interrupt = interrupt
      throw new Error('the pane is gone')
    }
    await urgent('Stop')
    await settle()
    expect(worker().interrupts).toBe(0)
    await stage.engine.clock.advance(2000)
    expect([given(), worker().interrupts]).toEqual([[['msg_1']], 1])
    expect(await stage.engine.sessions.interrupt('Worker', 'operator')).toMatchObject({ stopped: true })
  })

  it('that never succeeds is given up and recorded, and the message is delivered when the turn ends', async () => {
    await open()
    worker().become('busy')
    let tries = 0
    stage.engine.sessions.session('Worker')!.interrupt = async () => {
      tries += 1
      throw new Error('the pane is gone')
    }
    await urgent('Stop')
    await stage.engine.clock.advance(60_000)
    expect(tries).toBe(3)
    expect(stage.engine.entries.filter(({ type }) => type === 'session.not_interrupted')).toMatchObject([
      { actor: 'Master', data: { evidence: 'the runtime failed: the pane is gone' } },
    ])
    await become('idle')
    expect(given()).toEqual([['msg_1']])
  })
})
