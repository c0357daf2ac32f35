import { afterEach, describe, expect, it } from 'vitest'
import { taskOfRequest } from '../../src/tasks/references.ts'
import { decide } from '../harness/engine.ts'
import { openTeam, type TaskTeam } from './harness.ts'

let team: TaskTeam
afterEach(() => team.close())

const PAIR = { Master: {}, Worker: { parent: 'Master' } }

async function openPair() {
  team = await openTeam(PAIR)
  await team.rest('Master', 'Worker')
}

describe('a request of an agent with several tasks', () => {
  it('is recorded with the task of its turn, or with none', async () => {
    await openPair()
    for (const task of ['First', 'Second']) await team.says('Master', 'delegate', { to: 'Worker', task })
    const about = (context: object) =>
      taskOfRequest(team.store, { id: 'req_9', asker: 'Worker', context: JSON.stringify(context) })
    expect(await about({ saidIn: 'task_1' })).toEqual({ task_id: 'task_1', root: 'task_1' })
    await team.says('Worker', 'report', { status: 'completed', result: 'Done' })
    expect(await about({ saidIn: null })).toEqual({})
    expect(await about({})).toEqual({ task_id: 'task_2', root: 'task_2' })
  })
})

describe('a person', () => {
  it('answers the question of an agent, which continues: user input (S2.4, S2.5, S2.17)', async () => {
    await openPair()
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Book a flight' })
    const asked = await team.says('Worker', 'REQUEST_USER_INPUT', {
      from: 'Worker',
      question: 'What is your departure city?',
      context: 'I need this to search for flights',
      message_id: 'ask-1',
      awaiting_response: true,
    })
    expect(asked).toMatchObject({ status: 'ok', details: { request_id: 'req_1', task_id: 'task_1' } })
    await team.ends('Worker')
    expect(await team.task('task_1')).toMatchObject({ state: 'waiting_user' })
    expect(
      await team.orders('user_response', { to: 'Worker', answer: '  ', in_response_to: 'ask-1' }),
    ).toMatchObject({
      code: 'INVALID_COMMAND',
      message: expect.stringContaining('What is your departure city?'),
    })
    expect(
      await team.orders('USER_RESPONSE', {
        to: 'Worker',
        answer: 'LAX',
        message_id: 'u',
        in_response_to: 'ask-1',
      }),
    ).toMatchObject({
      status: 'ok',
    })
    expect(team.turn('Worker')).toContain('LAX')
    expect(team.turn('Worker')).toContain('From: operator')
    await team.settle()
    expect(await team.task('task_1')).toMatchObject({ state: 'executing' })
    expect(await team.orders('user_response', { answer: 'SFO', in_response_to: 'req_1' })).toMatchObject({
      code: 'CONFLICT',
    })
  })

  it('who does not answer in time lets the agent continue without an answer (C9)', async () => {
    await openPair()
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Book a flight' })
    await team.says('Worker', 'request_user_input', { question: 'Which city?' })
    await team.ends('Worker')
    await team.clock.advance(24 * 3600_000)
    expect(team.turn('Worker')).toContain('Nobody answered in time: Which city?')
  })

  it('also answers an agent without a task, by a message', async () => {
    await openPair()
    await team.says('Master', 'request_user_input', { question: 'Shall I begin?' })
    await decide(team.engine, { kind: 'operator' }, 'req_1', { decision: 'answer', comment: 'Yes' })
    await team.settle()
    expect(team.turn('Master')).toContain('A person answers: Yes')
  })

  it('decides on tasks that people delegated: follows up or accepts', async () => {
    await openPair()
    await team.orders('delegate', { to: 'Master', task: 'Do it' })
    await team.says('Master', 'report', { status: 'needs_help', result: 'I am stuck' })
    await team.ends('Master')
    expect(await team.task('task_1')).toMatchObject({ state: 'waiting_parent' })
    await decide(team.engine, { kind: 'operator' }, 'req_1', {
      decision: 'answer',
      comment: 'Pull harder',
    })
    await team.settle()
    expect(team.turn('Master')).toContain('Pull harder')
    await team.says('Master', 'report', { status: 'partial', result: 'Half of it' })
    await decide(team.engine, { kind: 'operator' }, 'req_2', { decision: 'approve' })
    expect(await team.task('task_1')).toMatchObject({ state: 'completed', reason: 'a person accepted it' })
  })

  it('takes over a task and reports its result (issue 4)', async () => {
    await openPair()
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    await team.orders('task_action', { task_id: 'task_1', action: 'take_over' })
    expect(team.puppets.of('Worker').interrupts).toBe(1)
    expect(await team.says('Worker', 'report', { status: 'completed', result: 'Mine' })).toMatchObject({
      code: 'FORBIDDEN',
    })
    await team.orders('report', { in_response_to: 'task_1', status: 'completed', result: 'By hand' })
    expect(await team.task('task_1')).toMatchObject({ state: 'completed', result: 'By hand' })
    expect(team.turn('Master')).toContain('By hand')
  })
})

describe('a command that is held for a person', () => {
  it('makes its task wait, and the verdict wakes the worker once (C9)', async () => {
    team = await openTeam({ ...PAIR, Worker: { parent: 'Master', permissions: { spawn_agent: 'ask' } } })
    await team.rest('Master', 'Worker')
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    const held = await team.says('Worker', 'request_action', { action: 'spawn_agent', target: 'Master' })
    expect(held).toMatchObject({ status: 'held', request_id: 'req_1' })
    await team.ends('Worker')
    expect(await team.task('task_1')).toMatchObject({ state: 'waiting_approval' })
    await decide(team.engine, { kind: 'operator' }, 'req_1', {
      decision: 'reject',
      comment: 'no need',
    })
    await team.settle()
    expect(await team.task('task_1')).toMatchObject({ state: 'executing' })
    expect(team.turn('Worker')).toContain('Verdict: rejected.')
    expect(team.turn('Worker')).toContain('no need')
    expect(team.turns('Worker')).toBe(2)
  })

  it('stays with the task of its turn', async () => {
    team = await openTeam(PAIR, { rules: { ask: [{ from: 'Master', to: 'Worker' }] } })
    await team.rest('Master', 'Worker')
    await team.orders('delegate', { to: 'Master', task: 'First' })
    await team.says('Master', 'delegate', { to: 'Worker', task: 'A part of the first' })
    await team.says('Master', 'report', { status: 'completed', result: 'Done without' })
    await team.ends('Master')
    await team.orders('delegate', { to: 'Master', task: 'Second' })
    await decide(team.engine, { kind: 'operator' }, 'req_1', { decision: 'approve' })
    expect(await team.task('task_3')).toMatchObject({ agent: 'Worker', parent: null })
    expect(await team.task('task_2')).toMatchObject({ delegations: 0 })
  })
})
