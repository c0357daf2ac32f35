/** Turns that end before their delivery is recorded: a model may be quicker than the disk. */
import { afterEach, describe, expect, it } from 'vitest'
import type { DeliveryResult } from '../../src/runtimes/runtime.ts'
import { openTeam, type TaskTeam } from '../tasks/harness.ts'

let team: TaskTeam
afterEach(() => team.close())

describe('a very short turn', () => {
  async function delegate(deliver: (ids: readonly string[]) => Promise<DeliveryResult>) {
    team = await openTeam({ Worker: {} }, { limits: { rate: 'off' } })
    await team.rest('Worker')
    const puppet = team.puppets.of('Worker')
    const session = team.sessions.session('Worker')!
    const { deliver: asBefore } = session
    session.deliver = async ({ ids }) => {
      session.deliver = asBefore
      return await deliver(ids)
    }
    await team.orders('delegate', { to: 'Worker', task: 'build it' })
    await team.settle()
    return puppet
  }

  it('counts as a turn: an agent that only spoke is reminded (ask 5)', async () => {
    const puppet = await delegate(async (ids) => {
      puppetOf().become('busy')
      puppetOf().port.onEvidence(ids, 'read', 'its answer began')
      puppetOf().become('idle')
      return { state: 'read', evidence: 'it was answered' }
    })
    expect(puppet.turns.map(({ text }) => /\((\w+)\)/.exec(text)?.[1])).toEqual(['reminder'])
  })

  it('ends for its task only once the delivery in it is recorded (ask 5)', async () => {
    const puppet = await delegate(async (ids) => {
      puppetOf().become('busy')
      puppetOf().port.onEvidence(ids, 'read', 'its answer began')
      // After the delivery, and before the disk.
      setImmediate(() => puppetOf().become('idle'))
      return { state: 'read', evidence: 'it was answered' }
    })
    await new Promise((resolve) => setImmediate(resolve))
    await team.settle()
    expect(puppet.turns.map(({ text }) => /\((\w+)\)/.exec(text)?.[1])).toEqual(['reminder'])
  })

  const puppetOf = () => team.puppets.of('Worker')
})
