import { describe, expect, it } from 'vitest'
import { createWorld, type Delegation } from './world.ts'

/** lead has task_1, and ada works on task_2 for it. */
function begin(more: Partial<Delegation> = {}) {
  const world = createWorld()
  world.delegate({ agent: 'lead' })
  world.delegate({ agent: 'ada', under: 'task_1', ...more })
  world.say('task_2', { type: 'started', by: 'ada' })
  return world
}

const QUERY = { type: 'query_asked', by: 'ada', question: 'q1', text: 'Price or comfort?' } as const
const APPROVAL = { type: 'approval_asked', by: 'ada', question: 'req_1', text: 'rm -r build' } as const

describe('a query', () => {
  it('may go to no other agent (C11)', () => {
    const world = begin()
    const refused = world.say('task_2', { ...QUERY, to: 'eve', requiresResponse: true })
    expect(refused).toMatchObject({ ok: false, refusal: { code: 'NOT_RELATED' } })
  })

  it('without an answer lets the worker continue (S2.1)', () => {
    const world = begin()
    world.say('task_1', { type: 'user_asked', by: 'lead', question: 'q', text: 'Well?' })
    world.say('task_2', { ...QUERY, to: 'lead', requiresResponse: true })
    world.pass(600)
    expect(world.task('task_2').state).toBe('executing')
    expect(world.sends('answer')).toMatchObject([{ text: expect.stringContaining('Nobody answered') }])
  })

  it('that needs no response does not make the task wait', () => {
    const world = begin()
    world.say('task_2', { ...QUERY, to: 'lead', requiresResponse: false })
    expect(world.task('task_2').state).toBe('executing')
  })

  it('of a task that a person delegated goes to that person', () => {
    const world = begin()
    world.say('task_1', { ...QUERY, by: 'lead', to: 'operator', requiresResponse: true })
    expect(world.effectsOf('ask_person')).toMatchObject([{ kind: 'input', question: 'q1', awaits: true }])
    expect(world.task('task_1').state).toBe('waiting_parent')
  })
})

describe('a question to the user', () => {
  it('is withdrawn when the task ends', () => {
    const world = begin()
    world.say('task_2', { type: 'user_asked', by: 'ada', question: 'q1', text: 'From where?' })
    world.say('task_2', { type: 'cancelled', by: 'lead', reason: 'no' })
    expect(world.effectsOf('withdraw')).toMatchObject([{ question: 'q1' }])
  })
})

describe('an approval', () => {
  it.each(['approved', 'modified'] as const)('%s by a person is performed, once (C9)', (verdict) => {
    const world = begin()
    world.say('task_2', APPROVAL)
    expect(world.task('task_2').state).toBe('waiting_approval')
    const decide = {
      type: 'approval_decided',
      by: 'operator',
      question: 'req_1',
      verdict,
      text: 'decided',
    } as const
    world.say('task_2', decide)
    expect(world.say('task_2', decide)).toMatchObject({ ok: false, refusal: { code: 'QUESTION_CLOSED' } })
    expect(world.sends('answer')).toHaveLength(1)
    expect(world.task('task_2').state).toBe('executing')
  })

  it('rejected, or expired, is not performed, and wakes the asker (C9)', () => {
    for (const [verdict, by] of [
      ['rejected', 'operator'],
      ['expired', 'orchestrator'],
    ] as const) {
      const world = begin()
      world.say('task_2', APPROVAL)
      world.say('task_2', { type: 'approval_decided', by, question: 'req_1', verdict, text: 'decided' })
      expect(world.sends('answer')).toHaveLength(1)
      expect(world.task('task_2').questions).toEqual([])
    }
  })

  it.each(['lead', 'ada', 'orchestrator'])('is not given by %s (C9)', (by) => {
    const world = begin()
    world.say('task_2', APPROVAL)
    const decided = {
      type: 'approval_decided',
      by,
      question: 'req_1',
      verdict: 'approved',
      text: 'decided',
    } as const
    expect(world.say('task_2', decided)).toMatchObject({ ok: false, refusal: { code: 'NOT_A_PERSON' } })
    expect(world.task('task_2').state).toBe('waiting_approval')
  })

  it('is never given by a timer (C9)', () => {
    const world = begin()
    world.say('task_2', APPROVAL)
    world.pass(100 * 3600)
    expect(world.task('task_2').state).toBe('waiting_approval')
    expect(world.say('task_2', { type: 'question_expired', question: 'req_1' })).toMatchObject({ ok: false })
  })

  it('that comes after the task has ended is not performed', () => {
    const world = begin()
    world.say('task_2', APPROVAL)
    world.say('task_2', { type: 'cancelled', by: 'operator', reason: 'no' })
    const late = {
      type: 'approval_decided',
      by: 'operator',
      question: 'req_1',
      verdict: 'approved',
      text: 'decided',
    } as const
    expect(world.say('task_2', late)).toMatchObject({ ok: false, refusal: { code: 'TASK_ENDED' } })
  })
})

describe('a person', () => {
  it('returns it with a follow-up', () => {
    const world = begin()
    world.say('task_2', { type: 'taken_over', by: 'operator' })
    world.say('task_2', { type: 'followed_up', by: 'operator', text: 'Go on' })
    expect(world.task('task_2')).toMatchObject({ state: 'executing', takenOver: false })
    expect(world.sends('follow_up')).toMatchObject([{ to: 'ada', text: 'Go on' }])
  })

  it('holds a task: its timers stop until it is released (issue §4)', () => {
    const world = begin()
    world.pass(100)
    world.say('task_2', { type: 'held', by: 'operator', reason: 'stop --all' })
    expect(world.task('task_2').state).toBe('blocked')
    world.pass(5000)
    expect(world.say('task_2', { type: 'deadline_passed' })).toMatchObject({
      ok: false,
      refusal: { code: 'STALE' },
    })
    expect(world.task('task_2').state).toBe('blocked')
    world.say('task_2', { type: 'released', by: 'operator' })
    world.pass(199)
    expect(world.task('task_2')).toMatchObject({ state: 'executing', attempt: 1 })
    world.pass(1)
    expect(world.task('task_2').attempt).toBe(2)
  })

  it('loses no event that arrives in the meantime', () => {
    const world = begin({ checks: ['tests'] })
    world.say('task_2', { type: 'held', by: 'operator', reason: 'stop --all' })
    const result = 'Found three.'
    world.say('task_2', { type: 'reported', by: 'ada', report: 'r1', status: 'completed', result })
    expect(world.task('task_2')).toMatchObject({ state: 'blocked', claim: { number: 1 } })
    world.say('task_2', { type: 'released', by: 'operator' })
    world.say('task_2', { type: 'checks_passed', claim: 1, evidence: 'exit 0' })
    expect(world.task('task_2').state).toBe('completed')
  })
})
