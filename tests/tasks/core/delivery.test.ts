import { describe, expect, it } from 'vitest'
import { createWorld, type Delegation } from './world.ts'

/** One task of ada's, delegated by the operator. */
function begin(more: Partial<Delegation> = {}) {
  const world = createWorld()
  world.delegate({ agent: 'ada', ...more })
  return world
}

const TAKEN = { type: 'acknowledged', by: 'ada' } as const
const STARTED = { type: 'started', by: 'ada' } as const

describe('the delivery of a task', () => {
  it('waits 30 s for the receipt, retries after 1, 2 and 4 s, then fails and notifies a person (S2.10, C7, C8)', () => {
    const world = begin()
    world.pass(29.9)
    expect(world.task('task_1').attempt).toBe(1)
    world.pass(0.1)
    expect(world.task('task_1')).toMatchObject({ attempt: 2, state: 'pending', due: { kind: 'retry' } })
    world.pass(1)
    expect(world.sends('delegate')).toHaveLength(2)
    world.pass(30 + 2)
    expect(world.sends('delegate')).toHaveLength(3)
    world.pass(30 + 4)
    expect(world.sends('delegate')).toHaveLength(4)
    world.pass(30)
    expect(world.task('task_1').state).toBe('failed')
    expect(world.effectsOf('ask_person')).toMatchObject([{ kind: 'escalation', awaits: false }])
    expect(world.task('task_1').reason).toBe('ada did not take it within 30 s; 4 attempts failed')
  })

  it('waits 8 and 16 s between more attempts, and no longer (C7)', () => {
    const world = createWorld({ breaker: { failures: 9, pauseMs: 60_000 } })
    world.delegate({ agent: 'ada', maxAttempts: 8 })
    const pauses: number[] = []
    while (world.task('task_1').endedAt === null) {
      world.pass(30)
      const { due } = world.task('task_1')
      if (due?.kind !== 'retry') continue
      pauses.push((due.at - world.now) / 1000)
      world.pass(pauses.at(-1)!)
    }
    expect(pauses).toEqual([1, 2, 4, 8, 16, 16, 16])
  })

  it('accepts a late receipt of an earlier attempt, and sends no other message', () => {
    const world = begin()
    world.pass(30)
    world.say('task_1', TAKEN)
    world.pass(10)
    expect(world.task('task_1').state).toBe('analyzing')
    expect(world.sends('delegate')).toHaveLength(1)
  })

  it('treats the first output as the receipt if it arrives earlier', () => {
    const world = begin()
    world.say('task_1', STARTED)
    expect(world.task('task_1')).toMatchObject({ state: 'executing', acknowledgedAt: world.now })
    expect(world.say('task_1', TAKEN)).toMatchObject({ ok: false, refusal: { code: 'DUPLICATE' } })
  })

  it('does not retry a worker that cannot be reached at all (C7)', () => {
    const world = begin()
    const why = 'no such program'
    world.say('task_1', { type: 'worker_unreachable', by: 'ada', why, recoverable: false })
    expect(world.task('task_1')).toMatchObject({ state: 'failed', attempt: 1 })
    expect(world.effectsOf('ask_person')).toHaveLength(1)
  })
})

describe('the deadline of a task', () => {
  function atWork() {
    const world = begin()
    world.say('task_1', TAKEN)
    world.say('task_1', STARTED)
    return world
  }

  it('is 300 s after its start, and leads to a new attempt (C8, S3.19)', () => {
    const world = atWork()
    world.pass(299)
    expect(world.task('task_1').attempt).toBe(1)
    world.pass(1)
    expect(world.task('task_1')).toMatchObject({ attempt: 2, state: 'pending' })
    expect(world.takeOutside()).toContainEqual(expect.objectContaining({ type: 'interrupt_agent' }))
  })

  it('does not run while the worker is busy with another task', () => {
    const world = begin()
    world.say('task_1', TAKEN)
    world.pass(1000)
    world.say('task_1', STARTED)
    world.pass(299)
    expect(world.task('task_1')).toMatchObject({ attempt: 1, state: 'executing' })
  })

  it('is paused while the task waits for others', () => {
    const world = atWork()
    world.pass(100)
    world.say('task_1', { type: 'user_asked', by: 'ada', question: 'q', text: 'From where?' })
    world.pass(3600)
    world.say('task_1', { type: 'answered', by: 'operator', question: 'q', answer: 'LAX' })
    world.pass(199)
    expect(world.task('task_1').attempt).toBe(1)
    world.pass(1)
    expect(world.task('task_1').attempt).toBe(2)
  })

  it('leaves a woken worker at least a minute', () => {
    const world = atWork()
    world.pass(299)
    world.say('task_1', { type: 'user_asked', by: 'ada', question: 'q', text: 'From where?' })
    world.say('task_1', { type: 'answered', by: 'operator', question: 'q', answer: 'LAX' })
    world.pass(59)
    expect(world.task('task_1').attempt).toBe(1)
  })

  it('is moved by a granted extension, not by the request (S3.19)', () => {
    for (const granted of [true, false]) {
      const world = atWork()
      const ask = {
        type: 'extension_requested',
        by: 'ada',
        question: 'x',
        seconds: 60,
        reason: 'slow',
      } as const
      world.say('task_1', ask)
      expect(world.task('task_1').state).toBe('executing')
      if (granted) world.say('task_1', { type: 'extension_granted', by: 'operator', question: 'x' })
      world.pass(302)
      expect(world.task('task_1').attempt).toBe(granted ? 1 : 2)
    }
  })

  it.each([0, -5, 1e9, Number.NaN])('is not moved by %s seconds', (seconds) => {
    const world = atWork()
    const ask = { type: 'extension_requested', by: 'ada', question: 'x', seconds, reason: 'slow' } as const
    expect(world.say('task_1', ask)).toMatchObject({ ok: false, refusal: { code: 'OUT_OF_RANGE' } })
  })

  it('ends the last attempt, and a person is notified (C7)', () => {
    const world = createWorld()
    world.delegate({ agent: 'ada', delegator: 'lead', maxAttempts: 1 })
    world.say('task_1', STARTED)
    world.pass(300)
    expect(world.task('task_1').state).toBe('failed')
    expect(world.sends('failed')).toMatchObject([{ to: 'lead', wake: true }])
    expect(world.effectsOf('ask_person')).toMatchObject([{ kind: 'escalation' }])
  })
})

describe('a worker that exits', () => {
  it('while its task waits loses nothing (S2.1: agents run only when invoked)', () => {
    const world = begin()
    world.say('task_1', { type: 'user_asked', by: 'ada', question: 'q', text: 'From where?' })
    world.say('task_1', { type: 'worker_exited', by: 'ada', why: 'stopped when idle' })
    expect(world.task('task_1')).toMatchObject({ attempt: 1, state: 'waiting_user' })
    world.takeOutside()
    world.say('task_1', { type: 'answered', by: 'operator', question: 'q', answer: 'LAX' })
    expect(world.takeOutside()).toMatchObject([{ type: 'start_agent', agent: 'ada' }])
  })
})

describe('a delegation', () => {
  it('is refused to an agent that keeps failing, until its circuit breaker allows a trial (ask 12)', () => {
    const world = createWorld({ breaker: { failures: 2, pauseMs: 60_000 } })
    world.delegate({ agent: 'ada', maxAttempts: 1 })
    world.delegate({ agent: 'ada', maxAttempts: 1 })
    world.pass(30)
    expect(world.delegate({ agent: 'ada' })).toMatchObject({ ok: false, refusal: { code: 'CIRCUIT_OPEN' } })
    expect(world.delegate({ agent: 'bob' })).toMatchObject({ state: 'pending' })
    world.pass(60)
    expect(world.delegate({ agent: 'ada' })).toMatchObject({ state: 'pending' })
    expect(world.delegate({ agent: 'ada' })).toMatchObject({ ok: false, refusal: { code: 'CIRCUIT_OPEN' } })
  })

  it('delays a retry until the circuit breaker allows it, without using up an attempt', () => {
    const world = createWorld({ breaker: { failures: 1, pauseMs: 60_000 } })
    world.delegate({ agent: 'ada', maxAttempts: 3 })
    world.pass(30 + 1)
    expect(world.sends('delegate')).toHaveLength(1)
    world.pass(60)
    expect(world.task('task_1').attempt).toBe(2)
    expect(world.sends('delegate')).toHaveLength(2)
    const notes = world.effects.filter((effect) => effect.type === 'note').map(({ text }) => text)
    expect(notes).toContain('ada failed too often recently: attempt 2 waits until the agent is tried again')
  })

  it('does not count held time as waiting for the circuit breaker (S2.1)', () => {
    const world = createWorld({ breaker: { failures: 1, pauseMs: 60_000 } })
    world.delegate({ agent: 'ada', maxAttempts: 3 })
    world.pass(30 + 1)
    expect(world.task('task_1').due).toMatchObject({ kind: 'retry', since: world.now })
    world.say('task_1', { type: 'held', by: 'operator', reason: 'not now' })
    world.pass(3600)
    world.say('task_1', { type: 'released', by: 'operator' })
    // Another task has the trial, so this one is postponed again instead of failing.
    world.breakers.set('ada', { ...world.breakers.get('ada')!, openedAt: world.now })
    world.pass(59)
    expect(world.task('task_1').state).toBe('pending')
    world.breakers.set('ada', { ...world.breakers.get('ada')!, openedAt: world.now })
    world.pass(10)
    expect(world.task('task_1')).toMatchObject({ state: 'pending', attempt: 2 })
  })

  it('waits behind the trials of others for half an hour, then fails with a notice to a person (S2.1, C7)', () => {
    const world = createWorld({ breaker: { failures: 2, pauseMs: 60_000 } })
    for (let number = 0; number < 40; number++) world.delegate({ agent: 'ada', maxAttempts: 4 })
    world.pass(40 * 60)
    const tasks = Array.from({ length: 40 }, (_, index) => world.task(`task_${index + 1}`))
    expect(tasks.every(({ state }) => state === 'failed' || state === 'pending')).toBe(true)
    const waited = tasks.filter(({ reason }) => reason?.includes('was not tried again within 30 min'))
    expect(waited.length).toBeGreaterThan(5)
    expect(waited.every(({ attempt }) => attempt < 4)).toBe(true)
    world.pass(6 * 3600)
    for (const { id } of tasks) expect(world.task(id).state).toBe('failed')
  })
})
