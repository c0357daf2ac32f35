import { describe, expect, it } from 'vitest'
import { createWorld, type Delegation, REVIEWER, type World } from './world.ts'

/** ada has task_1 from lead, and rev judges what she claims. */
function claimed(more: Partial<Delegation> = {}) {
  const world = createWorld()
  world.delegate({ agent: 'ada', delegator: 'lead', judge: REVIEWER, ...more })
  world.say('task_1', { type: 'started', by: 'ada' })
  report(world)
  return world
}

let reports = 0
function report(world: World, result = 'Found three.') {
  return world.say('task_1', {
    type: 'reported',
    by: 'ada',
    report: `r${++reports}`,
    status: 'completed',
    result,
  })
}

const judged = (claim: number, completed: boolean, by = 'rev') =>
  ({ type: 'judged', by, claim, completed, reason: completed ? 'all three' : 'only two' }) as const
const reviews = (world: World) => world.sends('review')

describe('an agent that judges', () => {
  it('gets the task, the claim and the evidence, and decides (S2.11, C22)', () => {
    const world = claimed({ checks: ['tests'] })
    expect(reviews(world)).toEqual([])
    world.say('task_1', { type: 'checks_passed', claim: 1, evidence: 'tests passed (exit code 0)' })
    const [asked] = reviews(world)
    expect(asked).toMatchObject({ to: 'rev', wake: true })
    for (const part of ['> Do task_1', '> Found three.', '> passed: tests passed (exit code 0)', 'claim 1']) {
      expect(asked).toMatchObject({ text: expect.stringContaining(part) })
    }
    expect(world.task('task_1').state).toBe('executing')
    expect(world.say('task_1', judged(1, true)).ok).toBe(true)
    expect(world.task('task_1')).toMatchObject({ state: 'completed', reason: 'all three' })
    expect(world.task('task_1').evidence.at(-1)).toMatchObject({
      step: 'judge',
      outcome: 'passed',
      by: 'rev',
    })
  })

  it('is the only judge besides people: neither the worker nor the delegator can judge', () => {
    for (const by of ['ada', 'lead', 'bob', 'orchestrator']) {
      expect(claimed().say('task_1', judged(1, true, by))).toMatchObject({
        ok: false,
        refusal: { code: 'NOT_YOURS' },
      })
    }
    const world = claimed()
    expect(world.say('task_1', judged(1, true, 'operator')).ok).toBe(true)
    expect(world.task('task_1').evidence.at(-1)).toMatchObject({ by: 'operator' })
  })

  it('can no longer judge after a person took over or ended the task', () => {
    const taken = claimed()
    taken.say('task_1', { type: 'taken_over', by: 'operator' })
    expect(taken.say('task_1', judged(1, true))).toMatchObject({ ok: false, refusal: { code: 'STALE' } })
    const ended = claimed()
    ended.say('task_1', { type: 'cancelled', by: 'lead', reason: 'not needed' })
    expect(ended.say('task_1', judged(1, true))).toMatchObject({ ok: false, refusal: { code: 'TASK_ENDED' } })
  })

  it('gets excerpts of texts that are too long for one message (C20)', () => {
    const world = createWorld()
    world.delegate({ agent: 'ada', judge: REVIEWER, text: 'x'.repeat(100_000) })
    world.say('task_1', { type: 'started', by: 'ada' })
    report(world, 'y'.repeat(100_000))
    const [asked] = reviews(world) as { text: string }[]
    expect(Buffer.byteLength(asked!.text)).toBeLessThan(100_000)
    expect(asked!.text).toContain('characters left out')
  })
})
