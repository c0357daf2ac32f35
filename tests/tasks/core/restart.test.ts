import { describe, expect, it } from 'vitest'
import { pendingEffects } from '../../../src/tasks/core/events-and-effects.ts'
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

  it('repeats an interrupt until it is confirmed, even of a task that has ended', () => {
    const world = createWorld()
    world.delegate({ agent: 'ada' })
    world.say('task_1', { type: 'started', by: 'ada' })
    world.say('task_1', { type: 'cancelled', by: 'operator', reason: 'stop' })
    world.restart()
    expect(kinds(world)).toEqual(['interrupt_agent'])
    expect(world.say('task_1', { type: 'interrupted', interrupt: 1 }).ok).toBe(true)
    expect(pendingEffects(world.task('task_1'))).toEqual([])
    expect(world.task('task_1').state).toBe('cancelled')
  })

  it('does not let an old interrupt hit the new attempt', () => {
    const world = createWorld()
    world.delegate({ agent: 'ada' })
    world.say('task_1', { type: 'started', by: 'ada' })
    world.pass(300)
    expect(pendingEffects(world.task('task_1'))).toMatchObject([{ type: 'interrupt_agent' }])
    world.pass(1)
    expect(pendingEffects(world.task('task_1'))).toMatchObject([{ type: 'start_agent' }])
  })
})
