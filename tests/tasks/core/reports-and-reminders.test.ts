import { describe, expect, it } from 'vitest'
import type { ReportStatus } from '../../../src/tasks/task.ts'
import { createWorld, type Delegation, MODEL, type World } from './world.ts'

/** lead has task_1, and ada works on task_2 for it. */
function begin(more: Partial<Delegation> = {}) {
  const world = createWorld()
  world.delegate({ agent: 'lead' })
  world.delegate({ agent: 'ada', under: 'task_1', ...more })
  world.say('task_2', { type: 'acknowledged', by: 'ada' })
  world.say('task_2', { type: 'started', by: 'ada' })
  return world
}

const evidenceOf = (world: World) =>
  world.task('task_2').evidence.map(({ step, outcome, text }) => [step, outcome, text])

function report(world: World, status: ReportStatus, id = 'r1', result = 'Found three.') {
  return world.say('task_2', { type: 'reported', by: 'ada', report: id, status, result })
}

function endTurn(world: World, responded = false) {
  world.say('task_2', { type: 'started', by: 'ada' })
  return world.say('task_2', { type: 'turn_ended', by: 'ada', responded, lastWords: 'I think it is fine.' })
}

describe('a report of completed', () => {
  it('completes a task without checks and judge, and the evidence says so (S2.3, C22)', () => {
    const world = begin()
    report(world, 'completed')
    expect(world.task('task_2')).toMatchObject({ state: 'completed', result: 'Found three.' })
    expect(world.sends('report')).toMatchObject([{ to: 'lead', text: 'Found three.' }])
    expect(evidenceOf(world)).toEqual([
      ['schema', 'passed', 'the report is not empty'],
      ['checks', 'skipped', 'no checks were declared'],
      ['judge', 'skipped', 'no judge is configured'],
    ])
  })

  it('is a claim: the task is done only after its checks and its judge (C22, ask 6)', () => {
    const world = begin({ checks: ['tests'], judge: MODEL })
    world.takeOutside()
    report(world, 'completed')
    expect(world.takeOutside()).toMatchObject([{ type: 'run_checks', checks: ['tests'], claim: 1 }])
    expect(world.task('task_1').state).toBe('waiting_child')
    world.say('task_2', { type: 'checks_passed', claim: 1, evidence: 'exit 0' })
    expect(world.takeOutside()).toMatchObject([{ type: 'run_judge', judge: 'wise', result: 'Found three.' }])
    expect(world.task('task_2').state).toBe('executing')
    world.say('task_2', {
      type: 'judged',
      by: 'orchestrator',
      claim: 1,
      completed: true,
      reason: 'three are there',
    })
    expect(world.task('task_2')).toMatchObject({ state: 'completed', reason: 'three are there' })
    expect(evidenceOf(world)).toEqual([
      ['schema', 'passed', 'the report is not empty'],
      ['checks', 'passed', 'exit 0'],
      ['judge', 'passed', 'three are there'],
    ])
    expect(world.task('task_2').evidence.at(-1)).toMatchObject({ claim: 1, by: 'wise' })
  })

  it('goes back to the worker with the reason, three times, and then to the parent with the evidence (S2.17, C7)', () => {
    const world = begin({ checks: ['tests'] })
    for (let claim = 1; claim <= 4; claim++) {
      report(world, 'completed', `r${claim}`)
      world.say('task_2', { type: 'checks_failed', claim, evidence: `exit ${claim}` })
    }
    expect(world.sends('follow_up')).toHaveLength(3)
    expect(world.sends('follow_up')[0]).toMatchObject({
      to: 'ada',
      text: expect.stringContaining('exit 1'),
    })
    expect(world.sends('needs_help')).toMatchObject([{ to: 'lead', text: expect.stringContaining('exit 4') }])
    expect(world.task('task_2').state).toBe('waiting_parent')
  })

  it('is left to the parent when validation times out', () => {
    const world = begin({ checks: ['tests'] })
    report(world, 'completed')
    world.pass(900)
    expect(world.task('task_2').state).toBe('waiting_parent')
    expect(world.sends('needs_help')).toMatchObject([
      { text: expect.stringContaining('could not be validated') },
    ])
  })

  it('ignores results of other claims', () => {
    const world = begin({ checks: ['tests'] })
    report(world, 'completed', 'r1')
    world.say('task_2', { type: 'checks_failed', claim: 1, evidence: 'exit 1' })
    report(world, 'completed', 'r2')
    const late = world.say('task_2', { type: 'checks_passed', claim: 1, evidence: 'exit 0' })
    expect(late).toMatchObject({ ok: false, refusal: { code: 'STALE' } })
    expect(world.task('task_2').state).toBe('executing')
  })
})

describe('a report of partial or needs_help', () => {
  it.each([
    ['partial', 'report'],
    ['needs_help', 'needs_help'],
  ] as const)('of %s goes to the parent, which has to act (S2.3)', (status, kind) => {
    const world = begin()
    expect(world.task('task_1').state).toBe('waiting_child')
    report(world, status)
    expect(world.sends(kind)).toMatchObject([{ to: 'lead', wake: true, text: 'Found three.' }])
    expect(world.task('task_2').state).toBe('waiting_parent')
    expect(world.task('task_1').state).toBe('executing')
  })

  it('is followed up, answered or ended by the parent (S2.9)', () => {
    const decide = [
      [{ type: 'followed_up', by: 'lead', text: 'One more' }, 'executing', 'waiting_child'],
      [{ type: 'answered', by: 'lead', question: 'task_2', answer: 'Use B' }, 'executing', 'waiting_child'],
      [{ type: 'settled', by: 'lead', as: 'completed', reason: 'enough' }, 'completed', 'executing'],
      [{ type: 'settled', by: 'lead', as: 'skipped', reason: 'not needed' }, 'skipped', 'executing'],
      [{ type: 'cancelled', by: 'lead', reason: 'not needed' }, 'cancelled', 'executing'],
    ] as const
    for (const [event, child, parent] of decide) {
      const world = begin()
      report(world, 'partial')
      expect(world.say('task_2', event).ok).toBe(true)
      expect([world.task('task_2').state, world.task('task_1').state]).toEqual([child, parent])
    }
  })

  it('without a reaction fails in the end, and a person is notified', () => {
    const world = begin()
    report(world, 'needs_help')
    // The parent runs but does not answer.
    world.say('task_1', { type: 'user_asked', by: 'lead', question: 'q', text: 'Well?' })
    world.pass(600)
    expect(world.task('task_2')).toMatchObject({ state: 'failed', result: 'Found three.' })
    expect(world.effectsOf('ask_person')).toContainEqual(
      expect.objectContaining({ kind: 'escalation', question: 'task_2/escalation' }),
    )
  })
})

describe('a turn that ends without a report', () => {
  it('is counted from zero after the worker got an answer', () => {
    const world = begin()
    endTurn(world)
    endTurn(world)
    world.say('task_2', { type: 'followed_up', by: 'lead', text: 'One more' })
    endTurn(world)
    expect(world.sends('reminder')).toHaveLength(3)
    expect(world.sends('needs_help')).toHaveLength(0)
  })

  it('leads to no reminder for a worker with unread mail', () => {
    const world = begin()
    world.say('task_2', { type: 'followed_up', by: 'lead', text: 'One more' })
    world.say('task_2', { type: 'turn_ended', by: 'ada', responded: false, lastWords: '' })
    expect(world.sends('reminder')).toHaveLength(0)
  })

  it('leads to a reminder that names the waiting child', () => {
    const world = begin()
    world.say('task_1', { type: 'started', by: 'lead' })
    report(world, 'needs_help')
    world.say('task_1', { type: 'turn_ended', by: 'lead', responded: false, lastWords: '' })
    expect(world.sends('reminder')).toMatchObject([{ to: 'lead', text: expect.stringContaining('task_2') }])
  })
})
