/** Obstacles to a delivery, lookups of uncertain messages, and what must not grow while a message waits. */
import { describe, expect, it } from 'vitest'
import { rosterOf } from '../../src/agents/agents.ts'
import type { DeliveryResult } from '../../src/runtimes/runtime.ts'
import { createWorkerStage } from '../runs/worker-stage.ts'

const stage = createWorkerStage()
const { open, settle, worker, send, deliveries, become, given } = stage
const DRAFT = "its input box holds a person's draft"
const steps = () => stage.engine.types().filter((type) => type.startsWith('delivery.')).length
const rosterEntry = async () =>
  (await rosterOf(stage.engine.store, stage.engine.team(), stage.engine)).find(
    ({ name }) => name === 'Worker',
  )!

/** Refuses a delivery because of a draft that stays, as a terminal does. */
async function refuseForDraft() {
  worker().become('idle')
  const refused = Promise.withResolvers<DeliveryResult>()
  worker().arrival = refused.promise
  await send('One')
  await settle()
  worker().port.onObstacle(DRAFT)
  refused.resolve({ state: 'queued', evidence: `not written: ${DRAFT}` })
  worker().arrival = { state: 'submitted', evidence: 'seen' }
  await settle()
}

describe('a message that an obstacle keeps from an idle agent', () => {
  it("is queued with the reason, which the agent's status shows too (C27)", async () => {
    await open()
    await refuseForDraft()
    expect(await deliveries()).toEqual(['queued'])
    expect(stage.engine.sessions.waitsFor('Worker')).toBe(DRAFT)
    expect(await rosterEntry()).toMatchObject({ session: 'idle', waits_for: DRAFT })
    worker().port.onObstacle(undefined)
    await settle()
    expect(await rosterEntry()).not.toHaveProperty('waits_for')
    expect(await deliveries()).toEqual(['submitted'])
  })

  it('is delivered once the obstacle is gone, together with newer messages', async () => {
    await open()
    await refuseForDraft()
    await send('Two')
    await stage.engine.clock.advance(60_000)
    expect(given()).toEqual([['msg_1']])
    worker().port.onObstacle(undefined)
    await settle()
    expect(given()).toEqual([['msg_1'], ['msg_1', 'msg_2']])
  })

  it('adds no steps to its record while it waits, however long', async () => {
    await open()
    await refuseForDraft()
    const before = steps()
    for (const title of ['Two', 'Three', 'Four']) await send(title)
    await stage.engine.clock.advance(9 * 60_000)
    expect(steps()).toBe(before)
    expect(await deliveries()).toEqual(['queued', 'queued', 'queued', 'queued'])
  })

  it("is retried after a while even if the obstacle's end is not reported", async () => {
    await open()
    await refuseForDraft()
    await stage.engine.clock.advance(11 * 60_000)
    expect(await deliveries()).toEqual(['submitted'])
  })

  it('is delivered after the session has changed, whatever was reported before', async () => {
    await open()
    await refuseForDraft()
    worker().become('busy')
    await become('idle')
    expect(await deliveries()).toEqual(['submitted'])
  })

  it('is not delivered again when the person sends it from the input box (C25)', async () => {
    await open()
    worker().become('idle')
    const waiting = Promise.withResolvers<DeliveryResult>()
    worker().arrival = waiting.promise
    await send('One')
    await settle()
    worker().port.onObstacle(DRAFT)
    worker().port.onEvidence(['msg_1'], 'submitted', 'a person sent it')
    await settle()
    expect(worker().withdrawn).toEqual(['the agent already has a message of this turn'])
    waiting.resolve({ state: 'queued', evidence: 'no longer wanted' })
    worker().port.onObstacle(undefined)
    await stage.engine.clock.advance(60_000)
    expect(await deliveries()).toEqual(['submitted'])
    expect(given()).toEqual([['msg_1']])
  })

  it('that is refused without a reason is retried less and less often', async () => {
    await open()
    worker().arrival = { state: 'queued', evidence: 'not now' }
    await become('idle')
    await send('One')
    await stage.engine.clock.advance(60_000)
    const soon = worker().turns.length
    expect(soon).toBe(13)
    await stage.engine.clock.advance(10 * 60_000)
    expect(worker().turns.length).toBe(soon + 10)
  })
})

describe('a turn that was taken in part', () => {
  it('is followed by the rest, in order, before newer messages (C27)', async () => {
    await open()
    for (const title of ['One', 'Two', 'Three']) await send(title)
    const arrival = Promise.withResolvers<DeliveryResult>()
    worker().arrival = arrival.promise
    await become('idle')
    await send('Four')
    worker().arrival = { state: 'submitted', evidence: 'seen' }
    worker().become('busy')
    arrival.resolve({ state: 'submitted', evidence: 'the first of them', ids: ['msg_1', 'msg_2'] })
    await settle()
    expect(await deliveries()).toEqual(['submitted', 'submitted', 'queued', 'queued'])
    await become('idle')
    expect(given()).toEqual([
      ['msg_1', 'msg_2', 'msg_3'],
      ['msg_3', 'msg_4'],
    ])
    expect(await deliveries()).toEqual(['submitted', 'submitted', 'submitted', 'submitted'])
  })
})

describe('the reason why a queued message waits', () => {
  it.each([
    ['busy', 'it is busy'],
    ['waiting_input', 'it is waiting for a person'],
    ['initializing', 'it is still starting'],
  ] as const)('is shown for an agent that is %s', async (state, reason) => {
    await open()
    await become(state)
    expect(stage.engine.sessions.waitsFor('Worker')).toBe(reason)
    expect(await rosterEntry()).not.toHaveProperty('waits_for')
  })

  it('is shown for an agent that is paused or not running, but not for one that fetches its messages itself', async () => {
    await open()
    worker().become('idle')
    await stage.engine.order('request_action', { action: 'pause_session', target: 'Worker' })
    expect(stage.engine.sessions.waitsFor('Worker')).toBe('it is paused')
    await stage.engine.order('request_action', { action: 'resume_session', target: 'Worker' })
    await settle()
    expect(stage.engine.sessions.waitsFor('Worker')).toBeUndefined()
    await stage.engine.order('request_action', { action: 'terminate_agent', target: 'Worker' })
    await settle()
    expect(stage.engine.sessions.waitsFor('Worker')).toBe('it is not running')
    expect(stage.engine.sessions.waitsFor('Master')).toBeUndefined()
  })
})

describe('uncertain messages', () => {
  async function leaveInDoubt(count: number) {
    await open()
    worker().whereabouts = 'unknown'
    worker().arrival = { state: 'uncertain', evidence: 'no sign of it' }
    for (let number = 1; number <= count; number++) await send(`Nr ${number}`)
    await become('idle')
  }

  it('are looked up together (C25)', async () => {
    await leaveInDoubt(3)
    worker().searches.length = 0
    await become('idle')
    expect(worker().searches).toEqual([['msg_1', 'msg_2', 'msg_3']])
  })

  it('are looked up although the session reports nothing, soon at first and then rarely', async () => {
    await leaveInDoubt(1)
    await stage.engine.clock.advance(60_000)
    const soon = worker().searches.length
    expect(soon).toBe(12)
    await stage.engine.clock.advance(10 * 60_000)
    expect(worker().searches.length - soon).toBeLessThanOrEqual(11)
    worker().whereabouts = 'submitted'
    await stage.engine.clock.advance(60_000)
    expect(await deliveries()).toEqual(['submitted'])
  })

  it('are settled when the agent acknowledges them itself', async () => {
    await leaveInDoubt(1)
    await stage.engine.say('Worker', 'acknowledge', { ids: 'msg_1' })
    await become('idle')
    worker().searches.length = 0
    await stage.engine.clock.advance(3600_000)
    expect(worker().searches).toEqual([])
  })

  it('resolve the responses handed over with them when late evidence comes', async () => {
    await open()
    worker().become('busy')
    const heard = worker().port.onText({
      text: '<orc-command name="list_agents"/>',
      channel: 'transcript',
      key: 'rec-1',
    })
    await send('One')
    worker().arrival = { state: 'uncertain', evidence: 'no sign of it' }
    worker().whereabouts = 'unknown'
    await become('idle')
    expect(worker().turns[0]).toMatchObject({ ids: ['msg_1'], text: expect.stringContaining('RESPONSE') })
    worker().port.onEvidence(['msg_1'], 'submitted', 'its transcript shows it')
    await heard
    worker().become('idle')
    await stage.engine.clock.advance(60_000)
    expect(worker().turns).toHaveLength(1)
  })

  it('that never arrived bring back the responses handed over with them, however often', async () => {
    await open()
    worker().become('busy')
    const text = '<orc-command name="list_agents"/>'
    void worker().port.onText({ text, channel: 'transcript', key: 'rec-1' })
    await send('One')
    worker().arrival = { state: 'uncertain', evidence: 'no sign of it' }
    worker().become('idle')
    await stage.engine.clock.advance(60_000)
    expect(worker().turns.length).toBeGreaterThan(4)
    for (const turn of worker().turns) expect(turn.text).toContain('RESPONSE')
  })

  it('are looked up when their evidence could not be stored', async () => {
    await open()
    const { store } = stage.engine
    const { write } = store
    worker().become('idle')
    const arrival = Promise.withResolvers<DeliveryResult>()
    worker().arrival = arrival.promise
    await send('One')
    await settle()
    store.write = () => Promise.reject(new Error('the disk is full'))
    arrival.resolve({ state: 'submitted', evidence: 'seen' })
    await settle()
    store.write = write
    expect(await deliveries()).toEqual(['written'])
    worker().whereabouts = 'submitted'
    worker().become('idle')
    await stage.engine.clock.advance(5000)
    expect(await deliveries()).toEqual(['submitted'])
    expect(given()).toEqual([['msg_1']])
  })
})

describe('text that an earlier service left in the input box', () => {
  it('is submitted although it holds no message and none waits', async () => {
    await open()
    worker().hasUnsent = true
    await become('idle')
    expect(worker().searches).toEqual([[]])
    worker().onLocate = () => (worker().hasUnsent = false)
    await stage.engine.clock.advance(5000)
    expect(worker().hasUnsent).toBe(false)
    worker().searches.length = 0
    await stage.engine.clock.advance(3600_000)
    expect(worker().searches).toEqual([])
  })
})

describe('confirmations that wait for the next turn', () => {
  it('are shown as a few and a count, however many commands the agent sent', async () => {
    await open()
    worker().become('busy')
    for (let number = 1; number <= 50; number++) {
      await worker().port.onText({
        text: '<orc-command name="update_status" status="working"/>',
        channel: 'transcript',
        key: `rec-${number}`,
      })
      // Within the rate that an agent may speak at.
      await stage.engine.clock.advance(5000)
    }
    worker().become('idle')
    await send('One')
    await settle()
    const { text } = worker().turns[0]!
    expect(text).toContain('30 more commands')
    expect(text.split('Command: update_status').length - 1).toBe(20)
  })
})
