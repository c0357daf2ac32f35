import { afterEach, describe, expect, it } from 'vitest'
import type { Principal } from '../../src/base/agent.ts'
import type { ConfigInput } from '../../src/config/config.ts'
import type { Models } from '../../src/llm/llm.ts'
import { decide, OPERATOR, openTestEngine, type TestEngine } from '../harness/engine.ts'
import { deadUrl, modelsAt, openServer } from '../llm/harness.ts'
import { openTeam } from './harness.ts'

const HOUR = 3600_000
const ADA: Principal = { kind: 'person', person: 'ada' }

let engine: TestEngine
afterEach(() => engine.close())

async function open(more: Partial<ConfigInput> = {}, models?: Models) {
  const input = { agents: { Worker: {} }, people: { ada: {} }, limits: { rate: 'off' as const }, ...more }
  engine = await openTestEngine(input, models === undefined ? {} : { models })
}
const ask = (fields: Record<string, unknown> = {}) =>
  engine.say('Worker', 'request_user_input', { question: 'Which one?', ...fields })
const answer = (comment?: string, more = {}, who: Principal = OPERATOR) =>
  decide(engine, who, 'req_1', {
    decision: 'answer',
    ...(comment === undefined ? {} : { comment }),
    ...more,
  })
const told = async () => (await engine.mailOf('Worker')).at(-1)?.content

describe('a question with choices (C9)', () => {
  const choices = ['Red', 'Green', '3']

  it.each([
    ['its text', 'Green', 'Green'],
    ['its text in another case', ' green ', 'Green'],
    ['its number', '2', 'Green'],
    ['its text before a number', '3', '3'],
  ])('is answered with %s', async (_, said, meant) => {
    await open()
    await ask({ choices })
    expect(await answer(said)).toMatchObject({ request: { state: 'answered', comment: meant } })
    expect(await told()).toBe(`You asked: Which one?\nA person answers: ${meant}`)
  })

  it.each(['4', '0', 'Blue', 'Red, Green', '-1'])('refuses %s and lists the choices', async (said) => {
    await open()
    await ask({ choices })
    await expect(answer(said)).rejects.toMatchObject({
      code: 'INVALID_COMMAND',
      message: 'This is not one of the choices. The question: Which one?',
      hint: 'Answer with a number or the text of a choice: 1: Red; 2: Green; 3: 3',
    })
    expect(await told()).toBeUndefined()
  })

  it('accepts other answers if the asker allows them', async () => {
    await open()
    await ask({ choices, allow_other: true })
    expect(await answer('Blue')).toMatchObject({ request: { state: 'answered', comment: 'Blue' } })
  })

  it('can be asked in every notation: choices as a list, as JSON, or separated by commas', async () => {
    await open()
    for (const said of [choices, '["Red","Green","3"]', 'Red, Green, 3', 'Red\nGreen\n3']) {
      expect(await ask({ choices: said })).toMatchObject({ status: 'ok' })
    }
    const rows = await engine.store.all<{ form: string }>('SELECT form FROM human_requests')
    expect(new Set(rows.map(({ form }) => form))).toEqual(new Set([JSON.stringify({ choices })]))
  })

  it('is refused if two choices are equal, or the default is not a choice', async () => {
    await open()
    expect(await ask({ choices: ['a', 'A'] })).toMatchObject({ code: 'INVALID_COMMAND' })
    expect(await ask({ choices: ['a', 'b'], default: 'c' })).toMatchObject({ code: 'INVALID_COMMAND' })
    expect(await ask({ choices: [] })).toMatchObject({ code: 'INVALID_COMMAND' })
    expect(await ask({ choices: ['a', 'b'], default: 'c', allow_other: true })).toMatchObject({
      status: 'ok',
    })
  })
})

describe('a default', () => {
  it('is used for an empty answer of a person', async () => {
    await open()
    await ask({ choices: ['Red', 'Green'], default: 'Green' })
    expect(await answer('  ')).toMatchObject({ request: { state: 'answered', comment: 'Green' } })
  })

  it('is never used by a timer, even after a restart', async () => {
    await open()
    await ask({ default: 'yes' })
    engine = await engine.reopen()
    await engine.clock.advance(25 * HOUR)
    expect(await told()).toBe(
      'You asked: Which one?\nNobody answered in time. Continue as well as you can without an answer.',
    )
    expect(engine.types()).not.toContain('human.answered')
    await expect(answer('')).rejects.toMatchObject({ code: 'CONFLICT' })
  })

  it('that is missing makes a blank answer invalid, and the question is repeated (S2.12)', async () => {
    await open()
    await ask()
    for (const blank of [undefined, '', ' \n', '\u200b', '\u3164', '\0']) {
      await expect(answer(blank)).rejects.toMatchObject({
        code: 'INVALID_COMMAND',
        message: expect.stringContaining('Which one?'),
        hint: 'Write an answer to: Which one?',
      })
    }
  })
})

describe('an answer', () => {
  it('counts once; the second person learns who was first', async () => {
    await open()
    await ask()
    await answer('this one', {}, ADA)
    await expect(answer('that one')).rejects.toMatchObject({
      code: 'CONFLICT',
      message: 'req_1 was already answered by ada at 2030-01-01T00:00:00.000Z',
    })
    expect((await engine.mailOf('Worker')).map(({ content }) => content)).toHaveLength(1)
  })

  it('is the same as a command and as a verdict, with the same checks (S2.5)', async () => {
    await open()
    await ask({ choices: ['Red', 'Green'] })
    const say = (fields: Record<string, unknown>) =>
      engine.handle(ADA, { type: 'user_response', fields: { in_response_to: 'req_1', ...fields } })
    expect(await say({ answer: 'Blue' })).toMatchObject({ code: 'INVALID_COMMAND' })
    expect(await say({ answer: '1' })).toMatchObject({ status: 'ok' })
    expect(engine.entries.find(({ type }) => type === 'human.answered')).toMatchObject({ actor: 'ada' })
    expect(await told()).toContain('A person answers: Red')
  })

  it('goes to the named asker, even if another agent gave its question the same id (S2.5)', async () => {
    await open({ agents: { Worker: {}, Master: {} } })
    for (const asker of ['Worker', 'Master']) {
      await engine.say(asker, 'request_user_input', { question: `What does ${asker} do?`, message_id: 'q1' })
    }
    const say = (fields: Record<string, unknown>) =>
      engine.handle(ADA, { type: 'user_response', fields: { in_response_to: 'q1', ...fields } })
    expect(await say({ answer: 'Rest.' })).toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('req_1 (Worker)'),
    })
    expect(await say({ to: 'Worker', answer: 'Work.' })).toMatchObject({ status: 'ok' })
    expect(await told()).toContain('A person answers: Work.')
    expect(await engine.mailOf('Master')).toEqual([])
    // Only one of the two questions with this id is still open.
    expect(await say({ answer: 'Lead.' })).toMatchObject({ status: 'ok' })
    expect((await engine.mailOf('Master')).at(-1)!.content).toContain('Lead.')
  })

  it('expires after the time of orc.yaml (C8)', async () => {
    await open({ tasks: { user_input_timeout: '1h' } })
    await ask()
    await engine.clock.advance(HOUR)
    expect(await told()).toContain('Nobody answered in time')
  })

  it('never expires if orc.yaml says so (C8)', async () => {
    await open({ tasks: { user_input_timeout: 'off' } })
    await ask()
    await engine.clock.advance(400 * 24 * HOUR)
    const { request } = await answer('here')
    expect(request).toMatchObject({ state: 'answered' })
    expect(request).not.toHaveProperty('expires_at')
  })
})

describe('a model that checks answers (S2.12)', () => {
  const tasks = { answer_check: 'fast' }
  const models = {
    fast: { provider: 'openai-compatible' as const, model: 'm', base_url: 'http://localhost:1' },
  }

  async function modelThatSays(value: unknown) {
    const server = await openServer(() => ({ text: JSON.stringify(value) }))
    return { server, model: modelsAt(server.url, { retries: 0 }) }
  }

  it('refuses an answer that does not fit, with a reason; the person may insist', async () => {
    const { model } = await modelThatSays({ valid: false, reason: 'It names none.' })
    await open({ tasks, models }, model)
    await ask()
    await expect(answer('bananas')).rejects.toMatchObject({
      code: 'INVALID_COMMAND',
      message: 'It names none. The question: Which one?',
    })
    expect(
      await engine.handle(ADA, { type: 'user_response', fields: { in_response_to: 'req_1', answer: 'x' } }),
    ).toMatchObject({
      code: 'INVALID_COMMAND',
      message: expect.stringContaining('It names none.'),
    })
    expect(await answer('bananas', { insist: true })).toMatchObject({ request: { state: 'answered' } })
  })

  it('is not asked about choices and defaults', async () => {
    const { server, model } = await modelThatSays({ valid: false, reason: 'no' })
    await open({ tasks, models }, model)
    await ask({ choices: ['Red'] })
    expect(await answer('1')).toMatchObject({ request: { state: 'answered' } })
    expect(server.requests).toEqual([])
  })

  it('accepts every answer while it is unavailable, and the audit says so', async () => {
    await open({ tasks, models }, modelsAt(await deadUrl(), { retries: 0 }))
    await ask()
    expect(await answer('bananas')).toMatchObject({ request: { state: 'answered' } })
    expect(engine.entries.find(({ type }) => type === 'human.answer_unchecked')).toMatchObject({
      data: { request_id: 'req_1', model: 'fast' },
    })
  })

  it('that takes too long is skipped', async () => {
    const never: Models = {
      about: () => undefined,
      generateObject: ({ signal }) =>
        new Promise((resolve) => {
          const late = { ok: false, code: 'aborted', message: 'too late', hint: '' } as const
          signal!.addEventListener('abort', () => resolve(late))
        }),
      stream: () => Promise.reject(new Error('not to be asked')),
    }
    await open({ tasks, models }, never)
    await ask()
    const answered = answer('bananas')
    await new Promise((resolve) => setTimeout(resolve, 20))
    await engine.clock.advance(15_000)
    expect(await answered).toMatchObject({ request: { state: 'answered' } })
  })
})

describe('a question in a task', () => {
  async function openTask() {
    const team = await openTeam({ Lead: {}, Worker: { parent: 'Lead' } }, { people: { ada: {} } })
    engine = team
    await team.rest('Lead', 'Worker')
    await team.says('Lead', 'delegate', { to: 'Worker', task: 'Find out' })
    return team
  }
  const QUESTION = { question: 'Which one?', choices: 'Red, Green', default: 'Red' }

  it('blocks the task until it is answered, with the same choices (S2.16)', async () => {
    const team = await openTask()
    await team.says('Worker', 'request_user_input', QUESTION)
    expect(await team.task('task_1')).toMatchObject({ state: 'waiting_user' })
    await expect(answer('Blue')).rejects.toMatchObject({ code: 'INVALID_COMMAND' })
    expect(await answer('2')).toMatchObject({ request: { state: 'answered', task_id: 'task_1' } })
    await team.rest('Worker')
    expect(await team.task('task_1')).toMatchObject({ state: 'executing' })
    expect(team.turn('Worker')).toContain('Green')
  })

  it('that awaits no response leaves the task at work; an answer comes as a message (S2.4)', async () => {
    const team = await openTask()
    expect(await team.task('task_1')).toMatchObject({ state: 'executing' })
    const asked = await team.says('Worker', 'request_user_input', { ...QUESTION, awaiting_response: 'false' })
    expect(asked).toMatchObject({ status: 'ok' })
    expect(await team.task('task_1')).toMatchObject({ state: 'executing', questions: [] })
    await team.says('Worker', 'report', { status: 'completed', result: 'done' })
    expect(await team.task('task_1')).toMatchObject({ state: 'completed' })
    await answer('Green')
    expect((await engine.mailOf('Worker')).at(-1)!.content).toContain('A person answers: Green')
  })

  it('that the operator answers with the command answer is also closed in the inbox (S2.7)', async () => {
    const team = await openTask()
    await team.says('Worker', 'request_user_input', QUESTION)
    expect(await team.orders('answer', { in_response_to: 'task_1', answer: 'Blue' })).toMatchObject({
      code: 'INVALID_COMMAND',
    })
    expect(await team.orders('answer', { in_response_to: 'req_1', answer: 'Red' })).toMatchObject({
      status: 'ok',
    })
    await expect(answer('Green')).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringMatching(/already answered/),
    })
  })
})
