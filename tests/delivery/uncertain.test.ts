import { describe, expect, it } from 'vitest'
import { createWorkerStage, TEAM } from '../runs/worker-stage.ts'

const stage = createWorkerStage()
const { open, settle, worker, send, deliveries, become, given, order } = stage

/** Worker takes one message and ends before it answers. */
async function openWithLostTurn() {
  await open()
  await send('One')
  await become('idle')
  worker().become('exited')
}

async function spawn() {
  await order('spawn_agent')
  await settle()
}

describe('a message without evidence of delivery', () => {
  it('is delivered again only when the process that took it died before recording it (C25)', async () => {
    await open()
    for (const title of ['One', 'Two', 'Three']) {
      await send(title)
      await become('idle')
    }
    worker().port.onEvidence(['msg_2'], 'read', 'the answer began')
    await become('exited')
    expect(await deliveries()).toEqual(['submitted', 'read', 'submitted'])

    stage.puppets.isResumed = true
    const revive = async (whereabouts: 'submitted' | 'absent' | 'unknown') => {
      await spawn()
      worker().whereabouts = whereabouts
      await become('idle')
      const turns = given()
      await become('exited')
      return turns
    }
    expect(await revive('submitted')).toEqual([])
    expect(await deliveries()).toEqual(['submitted', 'read', 'submitted'])
    expect(await revive('unknown')).toEqual([])
    expect(await deliveries()).toEqual(['submitted', 'read', 'uncertain'])
    expect(await revive('absent')).toEqual([['msg_3']])
  })

  it('is looked up although the service is killed before the new process shows its prompt (C25)', async () => {
    await openWithLostTurn()
    stage.puppets.isResumed = true
    await spawn()
    expect(await deliveries()).toEqual(['uncertain'])
    // The next service finds that very process: it has not taken anything up itself.
    stage.puppets.isResumed = false
    await stage.engine.sessions.stop('Worker')
    await stage.engine.sessions.start('Worker')
    await become('idle')
    expect(given()).toEqual([['msg_1']])
  })

  it('is not overtaken by newer ones while it is looked up, unless that takes long (C25)', async () => {
    await openWithLostTurn()
    await send('Two')
    stage.puppets.isResumed = true
    await spawn()
    worker().whereabouts = 'unknown'
    worker().become('idle')
    await stage.engine.clock.advance(1000)
    await settle()
    expect(worker().turns).toEqual([])
    worker().whereabouts = 'absent'
    await stage.engine.clock.advance(500)
    await settle()
    expect(given()).toEqual([['msg_1', 'msg_2']])

    worker().become('exited')
    await send('Three')
    await spawn()
    worker().whereabouts = 'unknown'
    worker().become('idle')
    for (let look = 0; look < 20; look++) {
      await stage.engine.clock.advance(500)
      await settle()
    }
    expect(given()).toEqual([['msg_3']])
  })

  it('is looked up although the service is killed before the new process exists (C25)', async () => {
    await openWithLostTurn()
    const { promise: there, resolve } = Promise.withResolvers<void>()
    const { start } = stage.puppets
    stage.puppets.start = async (agent, port) => {
      await agent.credentials({ isResumed: true })
      await there
      return await start(agent, port)
    }
    await spawn()
    expect(await deliveries()).toEqual(['uncertain'])
    resolve()
  })

  it('that an urgent one overtook is looked up too when its process dies (C2, C25)', async () => {
    await open({ ...TEAM, agents: { ...TEAM.agents, Worker: { program: 'any', deliver: 'single' } } })
    await send('One')
    await send('Two', { priority: 'urgent' })
    await become('idle')
    worker().port.onEvidence(['msg_2'], 'read', 'the answer began')
    await stage.engine.clock.advance(10)
    await become('idle')
    expect(given()).toEqual([['msg_2'], ['msg_1']])
    worker().become('exited')
    stage.puppets.isResumed = true
    await spawn()
    await become('idle')
    expect(given()).toEqual([['msg_1']])
  })

  it('is uncertain, and never sent again by time alone', async () => {
    await open()
    worker().whereabouts = 'unknown'
    worker().arrival = { state: 'uncertain', evidence: 'no sign of it' }
    worker().become('idle')
    await send('One')
    await stage.engine.clock.advance(3600_000)
    worker().become('idle')
    await stage.engine.clock.advance(3600_000)
    expect(worker().turns.length).toBe(1)
    expect(await deliveries()).toEqual(['uncertain'])
  })

  it('that is found absent is sent again; one that is found is not (C25)', async () => {
    await open()
    worker().whereabouts = 'unknown'
    worker().arrival = { state: 'uncertain', evidence: 'no sign of it' }
    worker().become('idle')
    await send('One')
    await settle()
    worker().whereabouts = 'absent'
    worker().arrival = { state: 'submitted', evidence: 'seen' }
    await become('idle')
    expect(given()).toEqual([['msg_1'], ['msg_1']])

    worker().arrival = { state: 'uncertain', evidence: 'no sign of it' }
    worker().whereabouts = 'submitted'
    worker().become('idle')
    await send('Two')
    await settle()
    await become('idle')
    expect(worker().turns.filter((turn) => turn.ids.includes('msg_2')).length).toBe(1)
    expect(await deliveries()).toEqual(['submitted', 'submitted'])
  })

  it('is uncertain when the runtime throws during the delivery', async () => {
    await open()
    worker().whereabouts = 'unknown'
    worker().arrival = new Error('the pane went up in smoke')
    worker().become('idle')
    await send('One')
    await settle()
    expect(await deliveries()).toEqual(['uncertain'])
  })

  it('is delivered again when an interrupt removed it from the conversation (ask 11)', async () => {
    await open()
    worker().become('idle')
    await send('One')
    await settle()
    worker().port.onEvidence(['msg_1'], 'queued', 'the interrupt took it back')
    await become('idle')
    expect(given()).toEqual([['msg_1'], ['msg_1']])
    expect(await deliveries()).toEqual(['submitted'])
  })
})
