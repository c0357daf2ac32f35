import { afterEach, describe, expect, it } from 'vitest'
import type { Models } from '../../../src/llm/llm.ts'
import { OPERATOR, send } from '../../harness/engine.ts'
import { openTestService, type TestService } from '../../harness/service.ts'
import { deadUrl, modelsAt, openServer } from '../../llm/harness.ts'

let service: TestService
afterEach(() => service.close())

const TRAVEL = {
  Planner: { role: 'Plans trips' },
  Flights: { parent: 'Planner', role: 'Finds flights', capabilities: ['flight', 'airport'] },
  Hotels: { parent: 'Planner', capabilities: ['hotel', 'rooms'] },
  Prices: { parent: 'Flights', capabilities: ['fares'] },
}
const FAST = {
  models: { fast: { provider: 'openai-compatible' as const, model: 'x', base_url: 'http://127.0.0.1:1/v1' } },
  tasks: { selector: 'fast' },
}

const ask = (body: unknown, key?: string) =>
  service.call('POST', '/api/v1/asks', {
    body,
    ...(key === undefined ? {} : { headers: { 'idempotency-key': key } }),
  })
const selections = () => service.entries.filter(({ type }) => type === 'task.selected')
const tasks = async () => (await service.get('/api/v1/tasks?state=all')).json.tasks as { id: string }[]

/** The service with a model that gives this answer; `calls` counts how often it was asked. */
async function openWithModel(says: unknown, agents: Record<string, object> = TRAVEL) {
  const server = await openServer(() => ({ text: typeof says === 'string' ? says : JSON.stringify(says) }))
  const models = modelsAt(server.url, { retries: 0 })
  service = await openTestService({ agents, ...FAST } as never, { models })
  return server
}

describe('POST /api/v1/asks (S2.9, S2.14)', () => {
  it('gives the only root a task that names useful agents and why, by keywords without a model', async () => {
    service = await openTestService({ agents: TRAVEL })
    const { status, json } = await ask({ question: 'Find a flight to Rome and compare fares' })
    expect(status).toBe(200)
    expect(json).toEqual({
      task_id: 'task_1',
      root: 'Planner',
      chosen: ['Flights', 'Prices'],
      why: expect.stringContaining('By words in common'),
      by: 'keywords',
      unknown: [],
    })
    const task = (await service.get('/api/v1/tasks/task_1')).json
    expect(task).toMatchObject({ delegator: 'operator', agent: 'Planner' })
    expect(task.task).toBe('Find a flight to Rome and compare fares')
    expect(task.context).toMatchObject({
      chosen_agents: [
        { id: 'Flights', role: 'Finds flights', capabilities: ['flight', 'airport'] },
        { id: 'Prices', capabilities: ['fares'], through: 'Flights' },
      ],
      chosen_by: 'keywords',
    })
    expect(task.messages[0].content).toContain('chosen_agents')
    expect(selections()).toMatchObject([
      {
        actor: 'orchestrator',
        subject: 'Planner',
        data: { task_id: 'task_1', root: 'task_1', chosen: json.chosen },
      },
    ])
  })

  it('drops ids that the model invents, and records them', async () => {
    await openWithModel({ ids: ['hotels', 'Wizard'], why: 'Rooms are wanted.' })
    const { json } = await ask({ question: 'Where do we sleep?' })
    expect(json).toMatchObject({
      chosen: ['Hotels'],
      by: 'model',
      why: 'Rooms are wanted.',
      unknown: ['Wizard'],
    })
    expect(selections()[0]!.data).toMatchObject({ unknown: ['Wizard'] })
  })

  it('accepts an empty choice: the root works alone', async () => {
    await openWithModel({ ids: [], why: 'It knows that itself.' })
    const { json } = await ask({ question: 'Find a flight' })
    expect(json).toMatchObject({ root: 'Planner', chosen: [], by: 'model' })
    expect((await service.get('/api/v1/tasks/task_1')).json.context).toMatchObject({ chosen_agents: [] })
  })

  it('uses keywords if the model answers garbage or is unavailable, and says so', async () => {
    await openWithModel('All of them, obviously!')
    const { json } = await ask({ question: 'A hotel, please' })
    expect(json).toMatchObject({ chosen: ['Hotels'], by: 'keywords', unknown: [] })
    expect(json.why).toContain('could not choose')
    expect(selections()[0]!.data).toMatchObject({ failure: expect.stringContaining('garbage') })
    await service.close()
    service = await openTestService(
      { agents: TRAVEL, ...FAST },
      { models: modelsAt(await deadUrl(), { retries: 0 }) },
    )
    expect((await ask({ question: 'A hotel, please' })).json).toMatchObject({
      chosen: ['Hotels'],
      by: 'keywords',
    })
  })

  it('asks the model once per key, however many requests arrive at once, and creates one task', async () => {
    const server = await openWithModel({ ids: ['Hotels'], why: 'Rooms.' })
    const question = { question: 'Find a hotel' }
    const all = await Promise.all([ask(question, 'k-1'), ask(question, 'k-1'), ask(question, 'k-1')])
    for (const { json } of all) expect(json).toEqual(all[0]!.json)
    expect((await ask(question, 'k-1')).json).toEqual(all[0]!.json)
    expect(server.requests).toHaveLength(1)
    expect(await tasks()).toHaveLength(1)
    expect(selections()).toHaveLength(1)
    await ask(question)
    await ask(question)
    expect(await tasks()).toHaveLength(3)
  })

  it('refuses a key that came with something else', async () => {
    service = await openTestService({ agents: TRAVEL })
    await ask({ question: 'One' }, 'k-1')
    for (const body of [{ question: 'Two' }, { question: 'One', agent: 'Hotels' }]) {
      expect(await ask(body, 'k-1')).toMatchObject({ status: 409, json: { code: 'IDEMPOTENCY_CONFLICT' } })
    }
    await service.command(service.tokens.operator, { type: 'list_agents' })
    expect(await tasks()).toHaveLength(1)
  })

  it('stores the choice with the task: a repetition after a crash finds both', async () => {
    await openWithModel({ ids: ['Hotels'], why: 'Rooms.' })
    const first = (await ask({ question: 'Find a hotel' }, 'k-1')).json
    const reopened = await service.reopen()
    const again = await send(reopened.engine, OPERATOR, 'ask', { question: 'Find a hotel' }, 'k-1')
    expect(again).toEqual(first)
    await reopened.engine.close()
  })

  it('can be asked again with its key when the service ended while it chose', async () => {
    const { promise: chosen, resolve: begin } = Promise.withResolvers<void>()
    const models: Models = {
      about: () => undefined,
      stream: () => Promise.reject(new Error('not to be asked')),
      generateObject: ({ signal }) =>
        new Promise((resolve) => {
          const aborted = { ok: false, code: 'aborted', message: 'aborted', hint: '' } as const
          signal!.addEventListener('abort', () => resolve(aborted))
          begin()
        }),
    }
    service = await openTestService({ agents: TRAVEL, ...FAST }, { models })
    const asking = send(service.engine, OPERATOR, 'ask', { question: 'Find a hotel' }, 'k-1')
    await chosen
    const refused = expect(asking).rejects.toMatchObject({ code: 'SERVICE_STOPPING' })
    const reopened = await service.reopen()
    await refused
    expect(await reopened.engine.store.all('SELECT * FROM tasks')).toEqual([])
    await reopened.engine.close()
  })

  it('uses the named agent as the root, in any case', async () => {
    service = await openTestService({ agents: TRAVEL })
    expect((await ask({ question: 'A flight', agent: 'flights' })).json).toMatchObject({
      root: 'Flights',
      chosen: [],
    })
    expect(await ask({ question: 'x', agent: 'Nobody' })).toMatchObject({
      status: 404,
      json: { code: 'UNKNOWN_AGENT' },
    })
  })

  it('chooses among several roots by the capabilities of their teams, and lists them if none fits', async () => {
    service = await openTestService({
      agents: {
        ...TRAVEL,
        Cook: { capabilities: ['pasta'] },
        Sous: { parent: 'Cook', capabilities: ['soup'] },
      },
    })
    expect((await ask({ question: 'Make a soup' })).json).toMatchObject({ root: 'Cook', chosen: ['Sous'] })
    expect(selections()[0]!.data).toMatchObject({ root_why: expect.stringContaining('soup') })
    const none = await ask({ question: 'Sing!' })
    expect(none).toMatchObject({ status: 400 })
    expect(none.json.message).toContain('Planner, Cook')
    expect(none.json.hint).toContain('--agent')
  })

  it('offers only agents that the root may delegate to', async () => {
    service = await openTestService({
      agents: {
        Boss: {},
        Own: { parent: 'Boss', capabilities: ['tax'] },
        Barred: { parent: 'Boss', capabilities: ['tax'] },
        Friend: { parent: 'Own2', capabilities: ['law'] },
        Own2: { parent: 'Boss' },
        Lone: { parent: 'Own2', capabilities: ['law'] },
      },
      rules: { allow: [{ from: 'Boss', to: 'Lone' }], forbid: [{ from: 'Boss', to: 'Barred' }] },
    })
    const { json } = await ask({ question: 'tax and law' })
    expect(json.chosen).toEqual(['Own', 'Lone'])
    const { context } = (await service.get(`/api/v1/tasks/${json.task_id}`)).json
    expect(context.chosen_agents[1]).toEqual({ id: 'Lone', capabilities: ['law'] })
  })

  it('is for people only, and refuses a missing or too large question', async () => {
    service = await openTestService({
      agents: { Master: {}, Worker: { parent: 'Master' }, Other: { parent: 'Master' } },
    })
    const asked = await service.call('POST', '/api/v1/asks', {
      token: service.tokens.worker,
      body: { question: 'x' },
    })
    expect(asked.status).toBe(403)
    for (const question of ['', ' \n']) expect((await ask({ question })).status).toBe(400)
    expect((await ask({})).status).toBe(400)
    expect((await ask({ question: 'x'.repeat(200_000) })).json.code).toBe('TOO_LARGE')
    expect(await ask({ question: 'x' }, 'two words')).toMatchObject({ status: 400 })
    expect(await tasks()).toEqual([])
  })
})
