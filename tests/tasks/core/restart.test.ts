import { describe, expect, it } from 'vitest'
import { createWorld, MODEL, REVIEWER } from './world.ts'

const kinds = (world: ReturnType<typeof createWorld>) => world.takeOutside().map(({ type }) => type)

describe('a crash between the commit and an outside effect', () => {
  it('loses nothing: pending effects are derived from the stored task', () => {
    const world = createWorld()
    world.delegate({ agent: 'ada', checks: ['tests'], judge: MODEL })
    const told = world.takeOutside()
    world.restart()
    expect(world.takeOutside()).toEqual(told)

    world.say('task_1', { type: 'started', by: 'ada' })
    world.say('task_1', { type: 'reported', by: 'ada', report: 'r', status: 'completed', result: 'Yes.' })
    world.restart()
    expect(kinds(world)).toEqual(['run_checks'])
    world.say('task_1', { type: 'checks_passed', claim: 1, evidence: '' })
    world.restart()
    expect(kinds(world)).toEqual(['run_judge'])
    world.say('task_1', { type: 'judged', by: 'orchestrator', claim: 1, completed: true, reason: 'yes' })
    world.restart()
    expect(kinds(world)).toEqual([])
  })

  it('wakes a reviewer again that has not taken the claim yet', () => {
    const world = createWorld()
    world.delegate({ agent: 'ada', judge: REVIEWER })
    world.say('task_1', { type: 'started', by: 'ada' })
    world.say('task_1', { type: 'reported', by: 'ada', report: 'r', status: 'completed', result: 'Yes.' })
    world.restart()
    expect(world.takeOutside()).toMatchObject([{ type: 'start_agent', agent: 'rev' }])
    world.say('task_1', { type: 'review_taken', by: 'rev' })
    world.restart()
    expect(kinds(world)).toEqual([])
  })
})
