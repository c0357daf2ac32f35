import { describe, expect, it } from 'vitest'
import type { TaskEvent } from '../../../src/tasks/core/events-and-effects.ts'
import { createWorld, type World } from './world.ts'

/** lead has task_1; ada and bob work on task_2 and task_3 for it. */
function begin() {
  const world = createWorld()
  world.delegate({ agent: 'lead' })
  world.delegate({ agent: 'ada', under: 'task_1', checks: ['tests'] })
  world.delegate({ agent: 'bob', under: 'task_1' })
  for (const [id, by] of [
    ['task_2', 'ada'],
    ['task_3', 'bob'],
  ] as const)
    world.say(id, { type: 'started', by })
  return world
}

/** Expects a refusal with that code and no effects. */
function expectRefusal(world: World, id: string, event: TaskEvent, code: string) {
  const before = { task: world.task(id), effects: world.effects.length }
  const refused = world.say(id, event)
  expect(refused).toMatchObject({ ok: false, refusal: { code, message: expect.stringMatching(/./) } })
  expect({ task: world.task(id), effects: world.effects.length }).toEqual(before)
}

const report = (by: string, id = 'r1', status: 'completed' | 'partial' = 'completed'): TaskEvent => ({
  type: 'reported',
  by,
  report: id,
  status,
  result: 'Found three.',
})

describe('an event from the wrong sender', () => {
  it.each<[string, TaskEvent, string]>([
    ["a report on another's task", report('bob'), 'NOT_YOURS'],
    ['a report by the parent', report('lead'), 'NOT_YOURS'],
    [
      "a question in another's name",
      { type: 'user_asked', by: 'bob', question: 'q', text: '?' },
      'NOT_YOURS',
    ],
    ['a cancellation by a brother', { type: 'cancelled', by: 'bob', reason: 'mine' }, 'NOT_YOURS'],
    ['a cancellation by the worker', { type: 'cancelled', by: 'ada', reason: 'tired' }, 'NOT_YOURS'],
    ['a follow-up by a brother', { type: 'followed_up', by: 'bob', text: 'do mine' }, 'NOT_YOURS'],
    ['a verdict of its own', { type: 'settled', by: 'ada', as: 'completed', reason: 'done' }, 'NOT_YOURS'],
    ['a take-over by an agent', { type: 'taken_over', by: 'lead' }, 'NOT_A_PERSON'],
    ['a hold by an agent', { type: 'held', by: 'lead', reason: 'wait' }, 'NOT_A_PERSON'],
  ])('%s is refused (C3)', (_, event, code) => {
    expectRefusal(begin(), 'task_2', event, code)
  })
})

describe('a repeated or late event is refused', () => {
  it('a second report during validation of the first', () => {
    const world = begin()
    world.say('task_2', report('ada'))
    expectRefusal(world, 'task_2', report('ada'), 'DUPLICATE')
    expectRefusal(world, 'task_2', report('ada', 'r2'), 'UNDER_VALIDATION')
  })

  it('the same report after its rejection', () => {
    const world = begin()
    world.say('task_2', report('ada'))
    world.say('task_2', { type: 'checks_failed', claim: 1, evidence: 'exit 1' })
    expectRefusal(world, 'task_2', report('ada'), 'DUPLICATE')
  })

  it('a second answer, and an answer to an unknown question', () => {
    const world = begin()
    const ask = { type: 'query_asked', by: 'ada', question: 'q1', to: 'lead', text: '?' } as const
    world.say('task_2', { ...ask, requiresResponse: true })
    const answer = { type: 'answered', by: 'lead', question: 'q1', answer: 'Yes' } as const
    world.say('task_2', answer)
    expectRefusal(world, 'task_2', answer, 'QUESTION_CLOSED')
    expectRefusal(world, 'task_2', { ...answer, question: 'q9' }, 'UNKNOWN_QUESTION')
    expectRefusal(world, 'task_2', { ...ask, requiresResponse: true }, 'DUPLICATE')
  })

  it('any event of a task that has ended', () => {
    const world = begin()
    world.say('task_3', report('bob'))
    expect(world.task('task_3').state).toBe('completed')
    const late: TaskEvent[] = [
      report('bob', 'r2'),
      { type: 'followed_up', by: 'lead', text: 'more' },
      { type: 'cancelled', by: 'operator', reason: 'stop' },
      { type: 'deadline_passed' },
      { type: 'worker_exited', by: 'bob', why: 'idle' },
      { type: 'parent_ended', as: 'failed', reason: '' },
      { type: 'delegated' },
    ]
    for (const event of late) expectRefusal(world, 'task_3', event, 'TASK_ENDED')
  })

  it.each<TaskEvent>([
    { type: 'ack_timed_out' },
    { type: 'retry_due' },
    { type: 'deadline_passed' },
    { type: 'wait_timed_out' },
    { type: 'validation_timed_out' },
    { type: 'checks_passed', claim: 1, evidence: '' },
    { type: 'judged', by: 'operator', claim: 0, completed: true, reason: '' },
    { type: 'validation_gave_up', claim: 3, why: '' },
    { type: 'interrupted', interrupt: 1 },
    { type: 'released', by: 'operator' },
  ])('$type about something that is over', (event) => {
    expectRefusal(begin(), 'task_2', event, 'STALE')
  })
})

describe('a loop', () => {
  it('of questions and reports is limited, but a report of completed still passes (S2.1)', () => {
    const world = createWorld({ maxQuestions: 2 })
    world.delegate({ agent: 'ada', delegator: 'lead' })
    world.say('task_1', report('ada', 'r1', 'partial'))
    world.say('task_1', report('ada', 'r2', 'partial'))
    expectRefusal(world, 'task_1', report('ada', 'r3', 'partial'), 'TOO_MANY')
    world.say('task_1', report('ada', 'r4'))
    expect(world.task('task_1').state).toBe('completed')
  })

  it('of follow-ups is limited (S2.1)', () => {
    const world = createWorld({ maxFollowUps: 1 })
    world.delegate({ agent: 'ada', delegator: 'lead' })
    world.say('task_1', { type: 'followed_up', by: 'lead', text: 'more' })
    expectRefusal(world, 'task_1', { type: 'followed_up', by: 'lead', text: 'more' }, 'TOO_MANY')
  })

  it('of needs_help and follow-ups ends in failure (S2.1)', () => {
    const world = createWorld({ maxQuestions: 2, maxReminders: 0 })
    world.delegate({ agent: 'ada', delegator: 'lead' })
    for (let round = 0; round < 9 && world.task('task_1').endedAt === null; round++) {
      world.say('task_1', { type: 'started', by: 'ada' })
      world.say('task_1', { type: 'turn_ended', by: 'ada', responded: false, lastWords: 'hm' })
      world.say('task_1', { type: 'answered', by: 'lead', question: 'task_1', answer: 'Try' })
    }
    expect(world.task('task_1').state).toBe('failed')
    expect(world.effectsOf('ask_person')).toHaveLength(1)
  })
})
