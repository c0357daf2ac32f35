import { afterEach, describe, expect, it } from 'vitest'
import type { Models } from '../../src/models/model.ts'
import { createPuppets } from '../fakes/puppet-runtime.ts'
import { openTeam, type TaskTeam } from './task-harness.ts'

let team: TaskTeam
afterEach(() => team.close())

const PAIR = { Master: {}, Worker: { parent: 'Master' } }
const CHECKS = {
  tests: { command: 'echo all good; exit 0' },
  lint: { command: 'echo line 3 is too long; exit 7' },
  slow: { command: 'sleep 60', timeout: '1s' },
}

async function openPair(more = {}) {
  team = await openTeam(PAIR, more)
  await team.rest('Master', 'Worker')
}

/** Checks are real processes, which take real time. */
async function until(reached: () => Promise<boolean>) {
  for (let tries = 0; tries < 200; tries++) {
    await team.settle()
    if (await reached()) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error('it never came to that')
}

const validated = (id: string) => until(async () => (await team.task(id)).claim === null)

async function report(result: string) {
  return await team.says('Worker', 'report', { status: 'completed', result })
}

describe('a report of completed', () => {
  it('counts when its checks pass, with their output as evidence (C22)', async () => {
    await openPair({ tasks: { checks: CHECKS } })
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it', checks: ['tests'] })
    const reported = await team.say('Worker', 'report', { status: 'completed', result: 'Done' })
    expect(reported).toMatchObject({ result: 'task_1 is under validation' })
    expect(await team.task('task_1')).toMatchObject({ state: 'executing', result: null })
    expect(await team.mailOf('Master')).toEqual([])
    await validated('task_1')
    const task = await team.task('task_1')
    expect(task).toMatchObject({ state: 'completed', result: 'Done' })
    expect(task.evidence).toMatchObject([
      { step: 'checks', passed: true, text: expect.stringContaining('tests passed (exit code 0)\nall good') },
    ])
    expect(team.turn('Master')).toContain('Done')
  })

  it('goes back with the reason when it fails, up to the limit, then to its parent: validation failure and retry (S2.17)', async () => {
    await openPair({ tasks: { checks: CHECKS, retries: 1 } })
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it', checks: 'tests, lint' })
    await report('Done')
    await validated('task_1')
    await team.ends('Worker')
    expect(team.turn('Worker')).toContain('Task: task_1 (follow_up)')
    expect(team.turn('Worker')).toContain('lint failed (exit code 7)\nline 3 is too long')
    await report('Done again')
    await validated('task_1')
    expect(await team.task('task_1')).toMatchObject({ state: 'waiting_parent', rejections: 1 })
    expect(team.turn('Master')).toContain('Task: task_1 (needs_help)')
    await team.says('Master', 'task_action', { task_id: 'task_1', action: 'fail', text: 'never mind' })
    expect(await team.task('task_1')).toMatchObject({ state: 'failed', reason: 'never mind' })
  })

  it('fails with a check that takes too long, and leaves nothing of it running', async () => {
    await openPair({ tasks: { checks: CHECKS } })
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it', checks: ['slow'] })
    await report('Done')
    await team.clock.advance(1000)
    await validated('task_1')
    expect((await team.task('task_1')).evidence).toMatchObject([
      { passed: false, text: expect.stringContaining('slow failed (not done after 1 s)') },
    ])
  })

  it('is refused when it is empty (S2.11)', async () => {
    await openPair()
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    await report('  ')
    expect(await team.task('task_1')).toMatchObject({ state: 'executing', rejections: 1 })
  })

  it('is checked by a command of the delegator only with the permission declare_checks', async () => {
    await openPair({ tasks: { checks: CHECKS } })
    const fields = { to: 'Worker', task: 'Do it', checks: ['touch /tmp/never'] }
    expect(await team.says('Master', 'delegate', fields)).toMatchObject({ status: 'blocked' })
    await team.close()
    team = await openTeam({ ...PAIR, Master: { permissions: { declare_checks: 'allow' } } })
    await team.rest('Master', 'Worker')
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it', checks: ['test -d .'] })
    await report('Done')
    await validated('task_1')
    expect(await team.task('task_1')).toMatchObject({ state: 'completed' })
  })
})

describe('a judge', () => {
  const JUDGED = {
    models: { wise: { provider: 'openai' as const, model: 'm' } },
    tasks: { judge: 'wise', retries: 1 },
  }

  /** A model that gives these answers, and keeps what it was asked. */
  function judging(...answers: (object | 'garbage')[]) {
    const asked: string[] = []
    const models = {
      about: () => undefined,
      stream: () => Promise.reject(new Error('a judge has no conversation')),
      async generateObject({ prompt }: { prompt: string }) {
        asked.push(prompt)
        const value = answers.shift()
        return value === 'garbage'
          ? { ok: false, code: 'garbage', message: 'it does not fit', hint: '' }
          : { ok: true, value, spending: {} }
      },
    } as unknown as Models
    return { models, asked }
  }

  async function openJudged({ models }: { models: Models }) {
    team = await openTeam(PAIR, JUDGED, createPuppets(), models)
    await team.rest('Master', 'Worker')
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Sum up' })
  }

  it('sends back what does not do the task, and lets pass what does (S2.11)', async () => {
    const judge = judging(
      { completed: false, reason: 'the sum is missing' },
      { completed: true, reason: 'the sum is there' },
    )
    await openJudged(judge)
    await report('I did it')
    await team.ends('Worker')
    expect(team.turn('Worker')).toContain('the sum is missing')
    await report('It is 42')
    expect(await team.task('task_1')).toMatchObject({ state: 'completed', reason: 'the sum is there' })
    expect(judge.asked[1]).toContain('Sum up')
    expect(judge.asked[1]).toContain('It is 42')
  })

  it('that answers garbage decides nothing: the delegator does', async () => {
    await openJudged(judging('garbage'))
    await report('I did it')
    expect(await team.task('task_1')).toMatchObject({ state: 'waiting_parent' })
    expect(team.turn('Master')).toContain('the judge failed: it does not fit')
  })

  it('that is not configured is skipped, and the record says so', async () => {
    await openPair()
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Sum up' })
    await report('I did it')
    expect(team.entries.find(({ type }) => type === 'task.noted')?.text).toContain('no judge is configured')
  })
})

describe('a person', () => {
  it('answers what an agent asks, and it goes on: user input (S2.4, S2.5, S2.17)', async () => {
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

  it('who does not answer in time leaves the agent to go on without (C9)', async () => {
    await openPair()
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Book a flight' })
    await team.says('Worker', 'request_user_input', { question: 'Which city?' })
    await team.ends('Worker')
    await team.clock.advance(24 * 3600_000)
    expect(team.turn('Worker')).toContain('Nobody answered in time: Which city?')
  })

  it('is asked by an agent without a task, too, and its answer is a message', async () => {
    await openPair()
    await team.says('Master', 'request_user_input', { question: 'Shall I begin?' })
    await team.board.verdicts.decide({ kind: 'operator' }, 'req_1', { decision: 'answer', comment: 'Yes' })
    await team.settle()
    expect(team.turn('Master')).toContain('A person answers: Yes')
  })

  it('decides on what was delegated by people: follows up, or accepts it', async () => {
    await openPair()
    await team.orders('delegate', { to: 'Master', task: 'Do it' })
    await team.says('Master', 'report', { status: 'needs_help', result: 'I am stuck' })
    await team.ends('Master')
    expect(await team.task('task_1')).toMatchObject({ state: 'waiting_parent' })
    await team.board.verdicts.decide({ kind: 'operator' }, 'req_1', {
      decision: 'answer',
      comment: 'Pull harder',
    })
    await team.settle()
    expect(team.turn('Master')).toContain('Pull harder')
    await team.says('Master', 'report', { status: 'partial', result: 'Half of it' })
    await team.board.verdicts.decide({ kind: 'operator' }, 'req_2', { decision: 'approve' })
    expect(await team.task('task_1')).toMatchObject({ state: 'completed', reason: 'a person accepted it' })
  })

  it('takes a task over, and reports it (issue 4)', async () => {
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
  it('keeps the task waiting, and its verdict wakes the worker once (C9)', async () => {
    team = await openTeam({ ...PAIR, Worker: { parent: 'Master', permissions: { spawn_agent: 'ask' } } })
    await team.rest('Master', 'Worker')
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    const held = await team.says('Worker', 'request_action', { action: 'spawn_agent', target: 'Master' })
    expect(held).toMatchObject({ status: 'held', request_id: 'req_1' })
    await team.ends('Worker')
    expect(await team.task('task_1')).toMatchObject({ state: 'waiting_approval' })
    await team.board.verdicts.decide({ kind: 'operator' }, 'req_1', {
      decision: 'reject',
      comment: 'no need',
    })
    await team.settle()
    expect(await team.task('task_1')).toMatchObject({ state: 'executing' })
    expect(team.turn('Worker')).toContain('Verdict: rejected.')
    expect(team.turn('Worker')).toContain('no need')
    expect(team.turns('Worker')).toBe(2)
  })

  it('is not carried out when nobody decides (C9)', async () => {
    team = await openTeam({ ...PAIR, Worker: { parent: 'Master', permissions: { terminate_agent: 'ask' } } })
    await team.rest('Master', 'Worker')
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    await team.says('Worker', 'request_action', { action: 'terminate_agent', target: 'Master' })
    await team.ends('Worker')
    await team.clock.advance(72 * 3600_000)
    expect(team.puppets.of('Master').ended).toBeUndefined()
    expect(team.turn('Worker')).toContain('Verdict: expired.')
  })
})

describe('an agent that is idle', () => {
  it('is stopped after its time, and started again by the next task with its conversation kept', async () => {
    team = await openTeam({
      Master: {},
      Worker: { parent: 'Master', on_demand: true, stop_when_idle: '10m' },
    })
    await team.rest('Master')
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    await team.rest('Worker')
    await report('Done')
    await team.puppets.of('Worker').port.keep({ conversation: 7 })
    await team.ends('Worker')
    await team.clock.advance(9 * 60_000)
    expect(team.puppets.of('Worker').ended).toBeUndefined()
    await team.clock.advance(60_000)
    expect(team.puppets.of('Worker').ended).toBe('stop')
    await team.says('Master', 'delegate', { to: 'Worker', task: 'And this' })
    expect(team.puppets.started('Worker')).toBe(2)
    expect(team.puppets.of('Worker').start.kept).toEqual({ conversation: 7 })
  })
})

describe('a restart', () => {
  it('while the task waits to be taken starts the worker and gives it once', async () => {
    const puppets = createPuppets()
    team = await openTeam({ Master: {}, Worker: { parent: 'Master', on_demand: true } }, {}, puppets)
    await team.rest('Master')
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    expect(await team.task('task_1')).toMatchObject({ state: 'pending' })
    team = await team.restarted()
    await team.rest('Worker')
    expect(team.turn('Worker')).toContain('Do it')
    expect(await team.task('task_1')).toMatchObject({ state: 'executing', attempt: 1 })
    expect(team.turns('Worker')).toBe(1)
  })

  it('while the worker is at work reminds it, and sends the task no second time', async () => {
    await openPair()
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    team = await team.restarted()
    await team.rest('Master', 'Worker')
    expect(team.turn('Worker')).toContain('Task: task_1 (reminder)')
    await team.says('Worker', 'report', { status: 'completed', result: 'Done' })
    expect(await team.task('task_1')).toMatchObject({ state: 'completed', attempt: 1 })
    expect((await team.mailOf('Worker')).filter(({ content }) => content === 'Do it')).toHaveLength(1)
  })

  it('while it waits for an answer, a person or a child keeps the wait and its clock', async () => {
    team = await openTeam({ Top: {}, Middle: { parent: 'Top' }, Bottom: { parent: 'Middle' } })
    await team.rest('Top', 'Middle', 'Bottom')
    await team.says('Top', 'delegate', { to: 'Middle', task: 'One' })
    await team.says('Middle', 'delegate', { to: 'Bottom', task: 'Two' })
    await team.says('Bottom', 'request_user_input', { question: 'Which?' })
    team = await team.restarted()
    await team.rest('Top', 'Middle', 'Bottom')
    expect(await team.task('task_1')).toMatchObject({ state: 'waiting_child' })
    expect(await team.task('task_2')).toMatchObject({ state: 'waiting_user' })
    expect(team.turns('Bottom')).toBe(0)
    await team.orders('user_response', { in_response_to: 'req_1', answer: 'That one' })
    expect(team.turn('Bottom')).toContain('That one')
    team = await team.restarted()
    await team.rest('Top', 'Middle', 'Bottom')
    await team.says('Bottom', 'report', { status: 'completed', result: 'Two is done' })
    expect(team.turn('Middle')).toContain('Two is done')
    expect(team.turns('Middle')).toBe(1)
  })

  it('while a claim is checked runs the checks again, and counts them once', async () => {
    await openPair({ tasks: { checks: { once: { command: 'echo run >> ran; sleep 0.2' } } } })
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it', checks: ['once'] })
    await report('Done')
    team = await team.restarted()
    await validated('task_1')
    expect(await team.task('task_1')).toMatchObject({ state: 'completed', claims: 1 })
    expect((await team.task('task_1')).evidence).toHaveLength(1)
  })

  it('after the end changes nothing', async () => {
    await openPair()
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    await report('Done')
    const before = await team.task('task_1')
    team = await team.restarted()
    await team.rest('Master', 'Worker')
    await team.clock.advance(3600_000)
    expect(await team.task('task_1')).toEqual(before)
    expect((await team.mailOf('Master')).filter(({ content }) => content === 'Done')).toHaveLength(1)
  })

  it('keeps the deadline: a task fails as late as it would have', async () => {
    await openPair({ tasks: { timeout: '60s', retries: 0 } })
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it' })
    await team.clock.advance(40_000)
    team = await team.restarted()
    await team.clock.advance(19_000)
    expect(await team.task('task_1')).toMatchObject({ state: 'executing' })
    await team.clock.advance(2000)
    expect(await team.task('task_1')).toMatchObject({ state: 'failed' })
  })
})
