import { afterEach, describe, expect, it } from 'vitest'
import { openTestService, type Reply, type TestService } from '../../harness/service.ts'

let service: TestService
let tokens: Record<string, string>
afterEach(() => service.close())

const TEAM = {
  Master: {},
  Worker: { parent: 'Master' },
  Other: { parent: 'Master' },
  Deep: { parent: 'Worker' },
  Stranger: {},
}

async function open(input: Parameters<typeof openTestService>[0] = {}) {
  service = await openTestService({ agents: TEAM, ...input })
  tokens = { operator: service.tokens.operator }
  for (const name of Object.keys({ ...TEAM, ...input.agents })) tokens[name] = await service.mint(name)
}

const say = (who: string, type: string, fields: Record<string, unknown> = {}): Promise<Reply> =>
  service.command(tokens[who]!, { type, ...fields })
const delegate = async (from: string, to: string, more: Record<string, unknown> = {}): Promise<string> =>
  (await say(from, 'delegate', { to, task: `Something for ${to}`, ...more })).json.details.task_id
const task = async (id: string) => (await service.get(`/api/v1/tasks/${id}`)).json
const report = (who: string, id: string, result = 'Done') =>
  say(who, 'report', { status: 'completed', result, in_response_to: id })

/** A helpful error: no internals, and a hint what to do. */
function expectClear({ status, json }: Reply, wanted: number, ...words: string[]) {
  expect([status, json.status === 'blocked' || json.status === 'error']).toEqual([wanted, true])
  const said = json.status === 'blocked' ? json.reason : `${json.message} ${json.hint}`
  for (const word of words) expect(said).toContain(word)
  expect(said).not.toMatch(/undefined|\[object|\.ts:|SQL/)
  if (json.status === 'error') expect(json.hint).toEqual(expect.any(String))
}

describe('a report', () => {
  it("of another child's task is refused, by any of its names, and changes nothing (C3)", async () => {
    await open()
    const mine = await delegate('Master', 'Worker', { message_id: 'd-1' })
    await delegate('Master', 'Other', { message_id: 'd-2' })
    for (const name of [mine, 'd-1', (await task(mine)).messages[0].id]) {
      expectClear(await report('Other', name), 403, `${mine} is the task of Worker`)
    }
    expect(await task(mine)).toMatchObject({ state: 'pending' })
    expect((await task(mine)).result).toBeUndefined()
    expect((await report('Worker', mine)).json).toMatchObject({ status: 'ok' })
  })

  it.each([
    'task_999',
    'task_0',
    'task_-1',
    'task_1e3',
    'msg_7',
    'req_1',
    'the flights',
    "1' OR '1'='1",
    'task_99999999999999999999',
  ])('of the invented task %s is refused, with a hint where to find ids', async (id) => {
    await open()
    await delegate('Master', 'Worker')
    expectClear(await report('Worker', id), 404, 'There is no task', 'task_7')
    expect(await task('task_1')).toMatchObject({ state: 'pending' })
  })

  it('without any task is refused', async () => {
    await open()
    expectClear(await say('Stranger', 'report', { status: 'completed', result: 'x' }), 404, 'no open task')
    expectClear(await report('Worker', ''), 404, 'no open task')
  })

  it('after a cancellation, or a repeated one, learns that the task has ended', async () => {
    await open()
    const cancelled = await delegate('Master', 'Worker')
    await say('Master', 'task_action', { task_id: cancelled, action: 'cancel', text: 'not needed' })
    expectClear(await report('Worker', cancelled), 409, 'cancelled, not needed')
    const done = await delegate('Master', 'Worker')
    await report('Worker', done, 'First')
    expectClear(await report('Worker', done, 'Second'), 409, 'completed')
    expect(await task(done)).toMatchObject({ result: 'First' })
  })

  it('of 256 KB is refused, and so are a task, a question, an answer and a follow-up of that size (C20)', async () => {
    await open()
    const big = 'x'.repeat(256 * 1024)
    const id = await delegate('Master', 'Worker')
    const { json } = await say('Worker', 'query', { question: 'How?' })
    const replies = [
      await report('Worker', id, big),
      await say('Master', 'delegate', { to: 'Other', task: big }),
      await say('Master', 'delegate', { to: 'Other', task: 'x', context: { big } }),
      await say('Worker', 'query', { question: big }),
      await say('Master', 'answer', { answer: big, in_response_to: json.details.question_id }),
      await say('Worker', 'request_user_input', { question: big }),
      await say('Master', 'task_action', { task_id: id, action: 'follow_up', text: big }),
    ]
    for (const reply of replies) expectClear(reply, 413, '102400', 'file')
    expect(await task(id)).toMatchObject({ state: 'waiting_parent', messages: { length: 2 } })
    await say('Master', 'answer', { answer: 'So.', in_response_to: json.details.question_id })
    expect((await report('Worker', id, 'x'.repeat(102_400))).status).toBe(200)
    expect((await task(id)).result).toHaveLength(102_400)
  })
})

describe('an answer', () => {
  async function ask(question = 'How?') {
    const id = await delegate('Master', 'Worker', { message_id: 'd-1' })
    const { json } = await say('Worker', 'query', { question, message_id: 'q-1' })
    return { id, question: json.details.question_id as string }
  }

  it('counts once: the second sender learns that', async () => {
    await open()
    const { id, question } = await ask()
    expect((await say('Master', 'answer', { in_response_to: question, answer: 'So.' })).status).toBe(200)
    expectClear(await say('Master', 'answer', { in_response_to: question, answer: 'Or so.' }), 409, question)
    const answers = (await task(id)).messages.filter(({ kind }: { kind: string }) => kind === 'answer')
    expect(answers).toMatchObject([{ content: 'So.' }])
  })

  it('counts once if two arrive at the same time', async () => {
    await open()
    const { id, question } = await ask()
    const both = await Promise.all(
      ['One', 'Two'].map((words) => say('Master', 'answer', { in_response_to: question, answer: words })),
    )
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 409])
    expect((await task(id)).messages).toHaveLength(3)
  })

  it("to one's own query is refused, and so is one of a stranger (C11)", async () => {
    await open()
    const { id, question } = await ask()
    for (const who of ['Worker', 'Other', 'Stranger'])
      for (const name of [question, 'q-1'])
        expectClear(
          await say(who, 'answer', { in_response_to: name, answer: 'Mine' }),
          403,
          'addressed to Master',
        )
    expect(await task(id)).toMatchObject({ state: 'waiting_parent', questions: { length: 1 } })
  })

  it('of a person to a query between agents counts, and a later answer of the agent is refused with that reason', async () => {
    await open()
    const { id, question } = await ask()
    expect((await say('operator', 'answer', { in_response_to: question, answer: 'As I say.' })).status).toBe(
      200,
    )
    expect(await task(id)).toMatchObject({ state: 'executing', questions: [] })
    expect((await service.mailOf('Worker')).at(-1)).toMatchObject({ from: 'operator', content: 'As I say.' })
    expectClear(
      await say('Master', 'answer', { in_response_to: question, answer: 'No' }),
      409,
      'no longer needs an answer',
    )
  })

  it('that is blank is refused with the question repeated (S2.12)', async () => {
    await open()
    const { question } = await ask('Price or convenience?')
    expectClear(
      await say('Master', 'answer', { in_response_to: question, answer: ' \n' }),
      400,
      'Price or convenience?',
    )
  })

  it('cannot be given by an agent in the name of people', async () => {
    await open()
    await delegate('Master', 'Worker')
    const { json } = await say('Worker', 'request_user_input', { question: 'Where?', message_id: 'r-1' })
    for (const who of ['Worker', 'Master']) {
      const response = { answer: 'LAX', in_response_to: json.details.request_id }
      expectClear(await say(who, 'user_response', response), 403, 'Only people')
      expect((await say(who, 'answer', response)).status).toBeGreaterThanOrEqual(400)
    }
    expect(await task('task_1')).toMatchObject({ state: 'waiting_user' })
  })
})

describe('a delegation', () => {
  it('to oneself, to an unknown agent, to people or to a stranger is refused', async () => {
    await open()
    expectClear(
      await say('Worker', 'delegate', { to: 'worker', task: 'x' }),
      403,
      'cannot delegate to itself',
    )
    expectClear(await say('Master', 'delegate', { to: 'Nobody', task: 'x' }), 404, 'Nobody', 'Worker, Other')
    expectClear(await say('Master', 'delegate', { to: 'operator', task: 'x' }), 404, 'operator')
    expectClear(await say('Master', 'delegate', { to: '*', task: 'x' }), 404, 'Unknown agent')
    expectClear(await say('Master', 'delegate', { to: 'Stranger', task: 'x' }), 403, 'Worker, Other')
    expect((await service.get('/api/v1/tasks?state=all')).json.tasks).toEqual([])
  })

  it('with a used id is the same one while that is open, and a new one if its text differs (C25)', async () => {
    await open()
    const first = await delegate('Master', 'Worker', { message_id: 'uuid' })
    const again = await say('Master', 'delegate', {
      to: 'Worker',
      task: 'Something for Worker',
      message_id: 'uuid',
    })
    expect(again.json).toMatchObject({ status: 'ok', details: { task_id: first } })
    expect(await service.mailOf('Worker')).toHaveLength(1)
    const other = await delegate('Master', 'Worker', { task: 'Something else', message_id: 'uuid' })
    expect(other).not.toBe(first)
    // The newest use of an id counts.
    expect((await report('Worker', 'uuid')).json).toMatchObject({ details: { task_id: other } })
    expect((await report('Worker', first)).status).toBe(200)
    // Ids of other agents don't matter.
    await delegate('Worker', 'Deep', { message_id: 'uuid' })
    expect((await service.get('/api/v1/tasks?state=all')).json.tasks).toHaveLength(3)
  })

  it('is stored once if the same id arrives twice at the same time, and so is a question (C25)', async () => {
    await open()
    const twice = (who: string, type: string, fields: Record<string, unknown>) =>
      Promise.all([say(who, type, fields), say(who, type, fields)])
    const delegated = await twice('Master', 'delegate', { to: 'Worker', task: 'x', message_id: 'a' })
    expect(new Set(delegated.map(({ json }) => json.details.task_id)).size).toBe(1)
    const asked = await twice('Worker', 'query', { question: 'How?', message_id: 'b' })
    expect(new Set(asked.map(({ json }) => json.details.question_id)).size).toBe(1)
    const people = await twice('Worker', 'request_user_input', { question: 'Where?', message_id: 'c' })
    expect(new Set(people.map(({ json }) => json.details.request_id)).size).toBe(1)
    expect(await task('task_1')).toMatchObject({ questions: { length: 2 } })
  })

  it('to a paused agent waits for it, and says so', async () => {
    await open()
    await say('operator', 'request_action', { action: 'pause_session', target: 'Worker' })
    const { json } = await say('Master', 'delegate', { to: 'Worker', task: 'x' })
    expect(json.result).toBe(
      'task_1 is delegated to Worker; it is paused and gets the task when it is resumed',
    )
    await service.clock.advance(10 * 60_000)
    expect(await task('task_1')).toMatchObject({ attempt: 1 })
    await say('operator', 'request_action', { action: 'resume_session', target: 'Worker' })
    const taken = await say('Worker', 'mailbox_check')
    expect(taken.json.details.messages).toMatchObject([{ task_id: 'task_1', kind: 'delegate' }])
    expect((await report('Worker', 'task_1')).status).toBe(200)
  })

  it('to a stopped agent says so, and fails after four attempts with a notice to a person (C7)', async () => {
    const script = { script: [{ on: { text: 'never' }, say: 'never' }] }
    const Runner = { parent: 'Master', runtime: 'scripted' as const, with: script }
    await open({ agents: { ...TEAM, Runner } })
    await service.clock.advance(100)
    await say('operator', 'request_action', { action: 'terminate_agent', target: 'Runner' })
    await service.clock.advance(100)
    const { json } = await say('Master', 'delegate', { to: 'Runner', task: 'x' })
    expect(json.result).toContain('it is stopped')
    expect(json.result).toContain('orc agent start Runner')
    await service.clock.advance(10 * 60_000)
    expect(await task('task_1')).toMatchObject({ state: 'failed', attempt: 4 })
    expect((await service.get('/api/v1/human-requests')).json.requests).toMatchObject([
      { kind: 'escalation' },
    ])
  })
})

describe('a cancellation', () => {
  it('is allowed to the delegator and to people', async () => {
    await open()
    const id = await delegate('Master', 'Worker')
    for (const who of ['Worker', 'Other', 'Stranger'])
      expectClear(
        await say(who, 'task_action', { task_id: id, action: 'cancel' }),
        403,
        'delegated by Master',
      )
    expect((await say('operator', 'task_action', { task_id: id, action: 'cancel' })).status).toBe(200)
  })

  it('reaches each of 1,000 descendants once, and their messages are withdrawn', async () => {
    const agents: Record<string, { parent?: string }> = { Root: {}, Top: { parent: 'Root' } }
    for (let middle = 0; middle < 20; middle++) {
      agents[`M${middle}`] = { parent: 'Top' }
      agents[`L${middle}`] = { parent: `M${middle}` }
    }
    await open({ agents })
    const root = await delegate('Root', 'Top')
    for (let middle = 0; middle < 20; middle++) {
      await delegate('Top', `M${middle}`)
      await service.command(
        tokens[`M${middle}`]!,
        Array.from({ length: 49 }, (_, n) => ({ type: 'delegate', to: `L${middle}`, task: `Leaf ${n}` })),
      )
    }
    const before = (await service.get('/api/v1/tasks?limit=1000')).json.tasks
    expect(before).toHaveLength(1000)
    const cancel = { task_id: root, action: 'cancel', text: 'changed our minds' }
    expect((await say('Root', 'task_action', cancel)).status).toBe(200)
    expect((await task(before.at(-1).id)).reason).toContain('changed our minds')
    expect((await service.get('/api/v1/tasks')).json.tasks).toEqual([])
    expect(service.types().filter((type) => type === 'task.cancelled')).toHaveLength(1001)
    expect((await say('L7', 'mailbox_check')).json.details.messages).toEqual([])
  })
})

describe('a parent that exits while it waits', () => {
  // The first matching line is used; the message about ended children names the task too.
  const script = [
    {
      on: { text: 'has ended' },
      say: '<orc-command name="report" status="completed">All is booked</orc-command>',
    },
    {
      on: { text: 'Plan a trip' },
      say: '<orc-command name="delegate" to="Worker">Find a flight</orc-command>',
    },
  ]
  const BOSS = { runtime: 'scripted' as const, on_demand: true, with: { script } }

  it('is restarted when its children are done, and finishes (S2.9)', async () => {
    await open({ agents: { Boss: BOSS, Worker: { parent: 'Boss' }, Master: {}, Other: {} } })
    await delegate('operator', 'Boss', { task: 'Plan a trip' })
    await service.clock.advance(1000)
    expect(await task('task_1')).toMatchObject({ state: 'waiting_child', children: [{ id: 'task_2' }] })
    await say('operator', 'request_action', { action: 'terminate_agent', target: 'Boss' })
    await service.clock.advance(1000)
    expect(await task('task_1')).toMatchObject({ state: 'waiting_child', attempt: 1 })
    expect((await report('Worker', 'task_2')).status).toBe(200)
    await service.clock.advance(1000)
    expect(await task('task_1')).toMatchObject({ state: 'completed', attempt: 1, result: 'All is booked' })
    expect((await task('task_1')).children).toHaveLength(1)
  })

  it('leaves nothing behind if it cannot be restarted: children are cancelled, and a person is notified', async () => {
    await open({
      agents: { Boss: { ...BOSS, on_demand: false }, Worker: { parent: 'Boss' }, Master: {}, Other: {} },
    })
    await service.clock.advance(100)
    await delegate('operator', 'Boss', { task: 'Plan a trip' })
    await service.clock.advance(1000)
    await say('operator', 'request_action', { action: 'terminate_agent', target: 'Boss' })
    await report('Worker', 'task_2')
    await service.clock.advance(2 * 3600_000)
    expect(await task('task_1')).toMatchObject({ state: 'failed' })
    expect(await task('task_2')).toMatchObject({ state: 'completed' })
    expect((await service.get('/api/v1/tasks')).json.tasks).toEqual([])
    expect((await service.get('/api/v1/human-requests')).json.requests).toMatchObject([
      { kind: 'escalation' },
    ])
  })
})
