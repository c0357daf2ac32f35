import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { startIdle, turn } from './harness.ts'

describe('a broken or hostile ACP agent', () => {
  it('may print invalid ACP: it is skipped, and logged a few times only', async () => {
    const { session, said, reaches, warnings } = await startIdle({ flags: ['--noise'] })
    const lines = Array.from(
      { length: 50 },
      (_, i) => `GARBAGE {"jsonrpc":"2.0","id":${i + 500},"result":{}}`,
    )
    await session.deliver(turn(`${lines.join('\n')}\nSAY fine`, 'msg_1'))
    await reaches('idle')
    expect(said).toEqual(['fine'])
    expect(warnings).toHaveLength(3)
  })

  it('may send malformed updates', async () => {
    const { session, said, reaches } = await startIdle()
    const bad = ['null', '[]', '7', '{}', '{"sessionUpdate":7}', '{"sessionUpdate":"tool_call","title":{}}']
    await session.deliver(turn(`${bad.map((json) => `UPDATE ${json}`).join('\n')}\nSAY fine`, 'msg_1'))
    await reaches('idle')
    expect(said).toEqual(['fine'])
  })

  it('may send an update of any size: over the limit it is dropped', async () => {
    const { session, said, reaches } = await startIdle({ limits: { lineBytes: 100_000 } })
    await session.deliver(turn('HUGE 300000\nSAY fine', 'msg_1'))
    await reaches('idle')
    expect(said).toEqual(['fine'])
  })

  it('is ended when it sends a huge response, which cannot be skipped', async () => {
    const { session, reaches } = await startIdle({ limits: { lineBytes: 100_000 } })
    await session.deliver(turn('SAY x\nHUGEANSWER 300000', 'msg_1'))
    expect(await reaches('error')).toContain('it sent a message of more than 100000 bytes')
  })

  it('that floods is throttled by its pipe, and loses no text', async () => {
    const gate = Promise.withResolvers<void>()
    const { session, said, reaches, fixture } = await startIdle({ hear: () => gate.promise })
    await session.deliver(turn('FLOOD 8000', 'msg_1'))
    await sleep(1500)
    expect(fixture.record('flooded')).toEqual([])
    gate.resolve()
    await reaches('idle')
    const lines = said.join('').trimEnd().split('\n')
    expect(lines).toHaveLength(8000)
    expect(lines.every((line, i) => line.startsWith(`line ${i} `))).toBe(true)
  })

  it('does not lose later text because earlier text could not be processed', async () => {
    let count = 0
    const hear = async () => {
      count += 1
      if (count === 1) throw new Error('the store is away')
    }
    const { session, said, reaches, warnings } = await startIdle({ hear })
    await session.deliver(turn('SAY one\nSLEEP 50\nSAY two', 'msg_1'))
    await reaches('idle')
    expect(said).toEqual(['one', 'two'])
    expect(warnings).toEqual(["the agent's text could not be processed"])
  })
})
