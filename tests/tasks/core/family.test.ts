import { describe, expect, it } from 'vitest'
import { createWorld, type Delegation, type World } from './world.ts'

/** lead has task_1 and delegates the rest. */
function begin(...children: Partial<Delegation>[]) {
  const world = createWorld()
  world.delegate({ agent: 'lead' })
  world.say('task_1', { type: 'started', by: 'lead' })
  children.forEach((child, index) => {
    world.delegate({ agent: `w${index}`, under: 'task_1', ...child })
  })
  return world
}

function finish(world: World, id: string) {
  const { agent } = world.task(id)
  world.say(id, { type: 'reported', by: agent, report: `${id} done`, status: 'completed', result: 'Yes.' })
}

describe('a parent', () => {
  it('is woken again for later delegations', () => {
    const world = begin({})
    finish(world, 'task_2')
    world.delegate({ agent: 'w9', under: 'task_1' })
    finish(world, 'task_3')
    expect(world.sends('children_ended').map(({ text }) => text)).toEqual([
      expect.stringMatching(/- task_2 /),
      expect.stringMatching(/- task_3 /),
    ])
  })

  it('is not reminded in the turn in which it is woken', () => {
    const world = begin({})
    finish(world, 'task_2')
    world.say('task_1', { type: 'turn_ended', by: 'lead', responded: false, lastWords: '' })
    expect(world.sends('reminder')).toHaveLength(0)
  })

  it('hears of a failure at once, and of the rest when it is woken', () => {
    const world = begin({ maxAttempts: 1 }, {}, {})
    finish(world, 'task_3')
    expect(world.sends('report')).toMatchObject([{ to: 'lead', wake: false }])
    world.pass(30)
    expect(world.sends('failed')[0]).toMatchObject({ to: 'lead', wake: true })
  })

  it('does not wait for a child that needs no response (S2.2)', () => {
    const world = begin({ requiresResponse: false })
    expect(world.task('task_1').state).toBe('executing')
    finish(world, 'task_2')
    expect(world.sends('children_ended')).toHaveLength(0)
  })

  it('that never stops delegating is refused (S2.1)', () => {
    const world = createWorld({ maxDelegations: 2 })
    world.delegate({ agent: 'lead' })
    world.delegate({ agent: 'a', under: 'task_1' })
    world.delegate({ agent: 'b', under: 'task_1' })
    expect(world.delegate({ agent: 'c', under: 'task_1' })).toMatchObject({
      ok: false,
      refusal: { code: 'TOO_MANY' },
    })
    expect(world.tasks.size).toBe(3)
  })
})

describe('the end of a parent', () => {
  it('cancels the children that are still open, with the reason', () => {
    const world = begin({})
    world.delegate({ agent: 'deep', under: 'task_2' })
    finish(world, 'task_1')
    expect(world.task('task_2')).toMatchObject({
      state: 'cancelled',
      reason: 'task_1 ended (completed) without waiting for it',
    })
    expect(world.task('task_3').state).toBe('cancelled')
    expect(world.sends('cancelled')).toMatchObject([{ to: 'w0' }, { to: 'deep' }])
  })

  it('lets a child finish that needs no response', () => {
    const world = begin({ requiresResponse: false })
    finish(world, 'task_1')
    expect(world.task('task_2').state).toBe('pending')
    finish(world, 'task_2')
    expect(world.sends('report')).toMatchObject([{ to: 'operator' }, { to: 'lead', wake: true }])
  })

  it('wakes the parent with excerpts of long results, each of which is a message of its own (C20)', () => {
    const world = begin({}, {})
    const long = `Begin ${'x'.repeat(50_000)} end`
    for (const id of ['task_2', 'task_3']) {
      const by = world.task(id).agent
      world.say(id, { type: 'reported', by, report: `r-${id}`, status: 'completed', result: long })
    }
    const [woken] = world.sends('children_ended')
    expect(woken!.text.length).toBeLessThan(5000)
    expect(woken!.text).toMatch(/task_3 .*Begin x+\n\[… 4\d+ characters left out …\]\nx+ end/)
    expect(world.sends('report')).toMatchObject([{ text: long }, { text: long }])
  })

  it('by cancellation reaches every descendant, root first, and wakes no parent', () => {
    const world = begin({}, { requiresResponse: false })
    world.delegate({ agent: 'deep', under: 'task_2' })
    world.say('task_1', { type: 'cancelled', by: 'operator', reason: 'stop' })
    expect(world.ended).toEqual(['task_1', 'task_2', 'task_4', 'task_3'])
    for (const { state } of world.tasks.values()) expect(state).toBe('cancelled')
    expect(world.sends('children_ended')).toHaveLength(0)
  })

  it('by cancellation reaches descendants below a task that has ended', () => {
    const world = begin({})
    world.delegate({ agent: 'deep', under: 'task_2', requiresResponse: false })
    finish(world, 'task_2')
    expect(world.task('task_3').state).toBe('pending')
    world.say('task_1', { type: 'cancelled', by: 'operator', reason: 'stop' })
    expect(world.task('task_3').state).toBe('cancelled')
  })

  it('interrupts a worker in its turn', () => {
    const world = begin({})
    world.say('task_2', { type: 'started', by: 'w0' })
    world.takeOutside()
    world.say('task_1', { type: 'cancelled', by: 'operator', reason: 'stop' })
    expect(world.takeOutside()).toMatchObject([{ type: 'interrupt_agent', agent: 'w0', interrupt: 1 }])
  })
})
