import { describe, expect, it } from 'vitest'
import { createWorkerStage, TEAM } from '../runs/worker-stage.ts'

const stage = createWorkerStage()
const { open, settle, worker, send, deliveries, become, given } = stage

describe('a message to an agent in a terminal', () => {
  it('waits until the agent is idle, then moves forward with evidence only (C2, C27)', async () => {
    await open()
    await send('One')
    await settle()
    expect(worker().turns).toEqual([])
    await become('idle')
    expect(worker().turns).toMatchObject([{ ids: ['msg_1'] }])
    expect(await deliveries()).toEqual(['submitted'])
    worker().port.onEvidence(['msg_1'], 'read', 'the answer began')
    await settle()
    expect(await deliveries()).toEqual(['read'])
  })

  it('is delivered together with other waiting messages, in order, or one by one if configured', async () => {
    await open()
    for (const title of ['One', 'Two', 'Three']) await send(title)
    await become('idle')
    expect(given()).toEqual([['msg_1', 'msg_2', 'msg_3']])
    await stage.engine.close()

    await open({ ...TEAM, agents: { ...TEAM.agents, Worker: { program: 'any', deliver: 'single' } } })
    for (const title of ['One', 'Two']) await send(title)
    await become('idle')
    expect(given()).toEqual([['msg_1']])
    await become('idle')
    expect(given()).toEqual([['msg_1'], ['msg_2']])
  })

  it('is handed out in the transaction that stores it if the agent is ready', async () => {
    await open()
    await become('idle')
    const commits: string[][] = []
    stage.engine.store.onCommit((entries) => void commits.push(entries.map((entry) => entry.type)))
    await send('One')
    await settle()
    expect(given()).toEqual([['msg_1']])
    expect(commits[0]).toEqual(['message.accepted', 'delivery.written'])
    expect(await deliveries()).toEqual(['submitted'])
  })

  it('goes back to the queue when the agent turns busy while it is stored (C2)', async () => {
    await open()
    await become('idle')
    stage.engine.store.onCommit((entries) => {
      if (entries.some((entry) => entry.type === 'message.accepted')) worker().become('busy')
    })
    await send('One')
    await settle()
    expect(worker().turns).toEqual([])
    expect(await deliveries()).toEqual(['queued'])
    await become('idle')
    expect(given()).toEqual([['msg_1']])
    expect(await deliveries()).toEqual(['submitted'])
  })

  it('is announced at once if high, and interrupts the turn if urgent, with a record (C2)', async () => {
    await open()
    worker().become('busy')
    await send('Soon', { priority: 'high' })
    await settle()
    expect(worker().notices).toEqual([expect.stringContaining('from Master')])
    expect(worker().interrupts).toBe(0)
    await send('Stop', { priority: 'urgent' })
    await settle()
    expect(worker().interrupts).toBe(1)
    expect(stage.engine.types()).toContain('session.interrupted')
    expect(worker().turns[0]?.ids).toEqual(['msg_2', 'msg_1'])
  })

  it('goes back to the queue when the agent is paused while it is handed out (S1.24)', async () => {
    await open()
    worker().become('busy')
    await send('One')
    await settle()
    let isPaused = false
    stage.engine.store.onCommit((entries) => {
      if (isPaused || entries.every(({ type }) => type !== 'delivery.written')) return
      isPaused = true
      stage.engine.sessions.setPaused('Worker', true)
    })
    worker().become('idle')
    await stage.engine.clock.advance(60_000)
    expect(worker().turns).toEqual([])
    expect(await deliveries()).toEqual(['queued'])
    stage.engine.sessions.setPaused('Worker', false)
    await settle()
    expect(given()).toEqual([['msg_1']])
  })
})
