import { afterEach, describe, expect, it } from 'vitest'
import { verifyStoredAudit } from '../../../src/main.ts'
import {
  eventsIn,
  openStream,
  openTestService,
  type SeenEvent,
  type TestService,
} from '../../harness/service.ts'

let service: TestService
afterEach(() => service.close())

const AGENTS = {
  Master: {},
  Worker: { parent: 'Master', capabilities: ['math'] },
  Helper: { parent: 'Worker' },
  Other: {},
}

const open = (task: string, token = service.tokens.operator, headers: Record<string, string> = {}) =>
  openStream(service.port, `/api/v1/tasks/${task}/events`, token, headers)
const ask = async (question: string) =>
  (await service.call('POST', '/api/v1/asks', { body: { question, agent: 'Master' } })).json.task_id as string
const kinds = (events: readonly SeenEvent[]) => events.map(({ event }) => event)
const ids = (events: readonly SeenEvent[]) => events.map(({ id }) => Number(id))
/** The agent reads and acknowledges its mail. */
async function take(agent: string) {
  const receipt = await service.say(agent, 'mailbox_check')
  const { messages } = (receipt as unknown as { details: { messages: { id: string }[] } }).details
  await service.say(agent, 'acknowledge', { ids: messages.map(({ id }) => id) })
}
async function delegated(from: string, to: string, task: string): Promise<string> {
  const receipt = await service.say(from, 'delegate', { to, task })
  if (receipt.status !== 'ok') throw new Error(JSON.stringify(receipt))
  return receipt.details!.task_id as string
}
const report = (agent: string, result: string) =>
  service.say(agent, 'report', { status: 'completed', result })

/** The whole flow of S2.9: a child asks its parent and a person, reports, and the root answers. */
async function play(root: string) {
  await take('Master')
  const child = await delegated('Master', 'Worker', 'Add 2 and 3')
  await take('Worker')
  await service.say('Worker', 'query', { question: 'In which base?' })
  await take('Master')
  await service.say('Master', 'answer', { to: 'Worker', answer: 'Ten.' })
  await take('Worker')
  await service.say('Worker', 'request_user_input', { question: 'Is zero a number?' })
  await service.call('POST', '/api/v1/human-requests/req_1/verdict', {
    body: { decision: 'answer', comment: 'It is.' },
  })
  await take('Worker')
  await report('Worker', '5')
  await take('Master')
  await service.say('Master', 'report', { status: 'completed', result: 'It is 5.', in_response_to: root })
  return child
}

describe('GET /api/v1/tasks/{id}/events (S2.9, S2.16, S2.18)', () => {
  it('streams the choice, states, delegations, messages, questions and verdicts, and ends with the result', async () => {
    service = await openTestService({ agents: AGENTS })
    const root = await ask('How much is 2 and 3?')
    const stream = await open(root)
    expect(stream.headers['content-type']).toBe('text/event-stream')
    const child = await play(root)
    await stream.ended
    const events = eventsIn(stream.text())
    const data = events.map((one) => one.data)
    expect(data.find(({ type }) => type === 'selected')).toMatchObject({
      task_id: root,
      agent: 'Master',
      chosen: [],
      by: 'keywords',
    })
    expect(data.filter(({ type }) => type === 'delegated')).toMatchObject([
      { task_id: root, from: 'operator', to: 'Master', text: 'How much is 2 and 3?' },
      { task_id: child, parent: root, from: 'Master', to: 'Worker', text: 'Add 2 and 3' },
    ])
    expect(
      data.filter(({ type }) => type === 'message').map(({ kind, from, to }) => [kind, from, to]),
    ).toEqual([
      ['delegate', 'operator', 'Master'],
      ['delegate', 'Master', 'Worker'],
      ['query', 'Worker', 'Master'],
      ['answer', 'Master', 'Worker'],
      ['answer', 'operator', 'Worker'],
      ['report', 'Worker', 'Master'],
      ['children_ended', 'orchestrator', 'Master'],
      ['report', 'Master', 'operator'],
    ])
    expect(data.find(({ type }) => type === 'asked')).toMatchObject({
      task_id: child,
      request_id: 'req_1',
      kind: 'input',
      from: 'Worker',
      text: expect.stringContaining('Is zero a number?'),
      awaits: true,
    })
    expect(data.find(({ type }) => type === 'verdict')).toMatchObject({
      task_id: child,
      request_id: 'req_1',
      verdict: 'answered',
      by: 'operator',
      to: 'Worker',
      text: 'It is.',
    })
    expect(
      data.filter(({ type, task_id }) => type === 'state' && task_id === child).map(({ state }) => state),
    ).toEqual(
      expect.arrayContaining(['analyzing', 'executing', 'waiting_parent', 'waiting_user', 'completed']),
    )
    expect(kinds(events).at(-1)).toBe('end')
    expect(data.at(-1)).toMatchObject({
      task_id: root,
      state: 'completed',
      result: 'It is 5.',
      agent: 'Master',
    })
    expect(ids(events)).toEqual([...ids(events)].sort((a, b) => a - b))
  })

  it('has no gap and no repetition, however often a reader reconnects', async () => {
    service = await openTestService({ agents: AGENTS })
    const root = await ask('How much?')
    const playing = play(root)
    const seen: SeenEvent[] = []
    let last = 0
    while (seen.at(-1)?.event !== 'end') {
      const stream = await open(root, service.tokens.operator, { 'last-event-id': String(last) })
      await stream.until((text) => eventsIn(text).length >= 2 || text.includes('event: end'))
      stream.drop()
      const got = eventsIn(stream.text())
      seen.push(...got)
      last = Number(got.at(-1)!.id)
    }
    await playing
    const whole = await open(root)
    await whole.ended
    expect(seen).toEqual(eventsIn(whole.text()))
    const again = await open(root, service.tokens.operator, { 'last-event-id': String(last) })
    await again.ended
    expect(kinds(eventsIn(again.text()))).toEqual(['end'])
  })

  it('contains only that tree, even if others write at the same time', async () => {
    service = await openTestService({ agents: AGENTS })
    const [one, two] = [await ask('One'), await ask('Two')]
    const stream = await open(one)
    await stream.until((text) => text.includes('"One"'))
    for (let count = 0; count < 50; count++) {
      await service.say('Master', 'send_message', { to: 'Worker', content: 'about nothing' })
    }
    await service.order('task_action', { task_id: two, action: 'cancel' })
    await service.order('task_action', { task_id: one, action: 'cancel' })
    await stream.ended
    const events = eventsIn(stream.text())
    expect(new Set(events.map(({ data }) => data.task_id))).toEqual(new Set([one]))
    expect(events.at(-1)!.data).toMatchObject({ type: 'end', state: 'cancelled' })
  })

  it('of a child contains that branch only', async () => {
    service = await openTestService({ agents: AGENTS })
    const root = await ask('How much?')
    await take('Master')
    const child = await delegated('Master', 'Worker', 'Part one')
    await take('Worker')
    const stream = await open(child)
    const grandchild = await delegated('Worker', 'Helper', 'A detail')
    await take('Helper')
    await report('Helper', 'done')
    await take('Worker')
    await report('Worker', 'all done')
    await stream.ended
    const about = new Set(eventsIn(stream.text()).map(({ data }) => data.task_id))
    expect(about).toEqual(new Set([child, grandchild]))
    expect(about.has(root)).toBe(false)
    const late = await open(child)
    await late.ended
    expect(new Set(eventsIn(late.text()).map(({ data }) => data.task_id))).toEqual(about)
  })

  it('shows an agent only its own tasks, without a hint at others', async () => {
    service = await openTestService({ agents: AGENTS })
    const root = await ask('How much?')
    await take('Master')
    const child = await delegated('Master', 'Worker', 'Part one')
    expect((await service.get(`/api/v1/tasks/${root}/events`, service.tokens.worker)).status).toBe(404)
    expect((await service.get(`/api/v1/tasks/${root}/events`, service.tokens.other)).status).toBe(404)
    const own = await open(child, service.tokens.worker)
    const parents = await open(root, service.tokens.master)
    await take('Worker')
    await report('Worker', 'done')
    await own.ended
    await take('Master')
    await service.say('Master', 'report', { status: 'completed', result: 'all', in_response_to: root })
    await parents.ended
    expect(eventsIn(own.text()).at(-1)!.data).toMatchObject({ type: 'end', task_id: child, result: 'done' })
    expect(new Set(eventsIn(parents.text()).map(({ data }) => data.task_id))).toEqual(new Set([root, child]))
  })

  it("shows the delegator the worker's own delegations only with permission to read them", async () => {
    service = await openTestService({ agents: AGENTS, rules: { allow: [{ from: 'Other', to: 'Worker' }] } })
    const given = await delegated('Other', 'Worker', 'Part one')
    await take('Worker')
    const below = await delegated('Worker', 'Helper', 'Between the two of us')
    const seenBy = async (token: string) =>
      (await service.get(`/api/v1/tasks/${given}`, token)).json.children.map((one: { id: string }) => one.id)
    expect(await seenBy(service.tokens.other)).toEqual([])
    expect(await seenBy(service.tokens.worker)).toEqual([below])
    expect(await seenBy(service.tokens.operator)).toEqual([below])
  })

  it('shows a held command of a worker as a question, and the verdict on it (C9)', async () => {
    service = await openTestService({
      agents: AGENTS,
      rules: { ask: [{ from: 'Worker', to: 'Other', reason: 'look first' }] },
    })
    const root = await ask('How much?')
    await take('Master')
    const child = await delegated('Master', 'Worker', 'Part one')
    await take('Worker')
    const stream = await open(root)
    await service.say('Worker', 'send_message', { to: 'Other', content: 'psst' })
    await stream.until((text) => text.includes('event: asked'))
    await service.call('POST', '/api/v1/human-requests/req_1/verdict', { body: { decision: 'reject' } })
    await stream.until((text) => text.includes('event: verdict'))
    const events = eventsIn(stream.text())
    expect(events.find(({ event }) => event === 'asked')!.data).toMatchObject({
      task_id: child,
      kind: 'approval',
      awaits: true,
    })
    expect(events.find(({ event }) => event === 'verdict')!.data).toMatchObject({
      task_id: child,
      verdict: 'rejected',
    })
    stream.drop()
  })

  it('shows the result of a check, and the rejection (C22)', async () => {
    service = await openTestService({
      agents: AGENTS,
      tasks: { checks: { never: { command: 'echo no; exit 3' } } },
    })
    const receipt = await service.order('delegate', { to: 'Worker', task: 'Build it', checks: ['never'] })
    const { task_id } = (receipt as unknown as { details: { task_id: string } }).details
    await take('Worker')
    const stream = await open(task_id)
    await report('Worker', 'built')
    await stream.until((text) => text.includes('"follow_up"'))
    const events = eventsIn(stream.text()).map(({ data }) => data)
    expect(events.find(({ type }) => type === 'evidence')).toMatchObject({
      task_id,
      agent: 'Worker',
      step: 'checks',
      outcome: 'failed',
      text: expect.stringContaining('3'),
    })
    stream.drop()
  })

  it('ends at once for an ended task, and is refused for an unknown one', async () => {
    service = await openTestService({ agents: AGENTS })
    const root = await ask('Never mind')
    await service.order('task_action', { task_id: root, action: 'cancel' })
    const stream = await open(root)
    await stream.ended
    expect(eventsIn(stream.text()).at(-1)!.data).toMatchObject({ type: 'end', state: 'cancelled' })
    expect((await service.get('/api/v1/tasks/task_99/events')).status).toBe(404)
    expect((await service.get('/api/v1/tasks/nonsense/events')).status).toBe(404)
    expect((await service.get(`/api/v1/tasks/${root}/events?after=99999`)).status).toBe(409)
  })

  it('continues after a restart of the service', async () => {
    service = await openTestService({ agents: AGENTS })
    const root = await ask('How much?')
    const before = await open(root)
    await before.until((text) => text.includes('event: selected'))
    const last = String(eventsIn(before.text()).at(-1)!.id)
    const ended = before.ended
    await service.http.close()
    await ended
    const { startService } = await import('../../../src/api/service.ts')
    const restarted = await startService({
      engine: service.engine,
      listen: { host: '127.0.0.1', port: 0 },
      allowedHosts: [],
      version: '1',
      startedAt: 0,
      configStatus: () => ({ loadedAt: 0 }),
      storePlace: '',
      verifyAudit: () => verifyStoredAudit(service.engine.store),
    })
    await service.order('task_action', { task_id: root, action: 'cancel' })
    const path = `/api/v1/tasks/${root}/events`
    const after = await openStream(restarted.port!, path, service.tokens.operator, { 'last-event-id': last })
    await after.ended
    expect(kinds(eventsIn(after.text()))).not.toContain('selected')
    expect(eventsIn(after.text()).at(-1)!.data).toMatchObject({ type: 'end', state: 'cancelled' })
    await restarted.close()
  })
})

describe('GET /api/v1/tasks/{id}/trace (S2.18)', () => {
  it('contains the exact flow with the delivery state and the attempts of each message', async () => {
    service = await openTestService({ agents: AGENTS })
    const root = await ask('How much is 2 and 3?')
    const child = await play(root)
    const { json } = await service.get(`/api/v1/tasks/${root}/trace`)
    expect(json.task).toMatchObject({ id: root, state: 'completed' })
    expect(json.tasks.map(({ id }: { id: string }) => id)).toEqual([root, child])
    expect(json.more).toBe(false)
    const stream = await open(root)
    await stream.ended
    const streamed = eventsIn(stream.text()).map(({ data }) => data)
    expect(json.steps.map(({ seq, type }: SeenEvent['data']) => [seq, type])).toEqual(
      streamed.slice(0, -1).map(({ seq, type }) => [seq, type]),
    )
    const first = json.steps.find(({ type }: { type: string }) => type === 'message')
    expect(first).toMatchObject({ kind: 'delegate', delivery: 'read', attempts: 1 })
  })

  it('shows attempts, and respects the limit', async () => {
    service = await openTestService({ agents: AGENTS })
    const root = await ask('Is anybody there?')
    await service.clock.advance(35_000)
    await service.clock.advance(5000)
    const { json } = await service.get(`/api/v1/tasks/${root}/trace`)
    const attempts = json.steps
      .filter(({ type }: { type: string }) => type === 'state')
      .map(({ attempt }: { attempt: number }) => attempt)
    expect(Math.max(...attempts)).toBeGreaterThan(1)
    const cut = (await service.get(`/api/v1/tasks/${root}/trace?limit=2`)).json
    expect(cut.steps).toHaveLength(2)
    expect(cut.more).toBe(true)
  })
})

describe('GET /api/v1/tasks', () => {
  it('counts only visible tasks against the limit', async () => {
    service = await openTestService({ agents: AGENTS })
    await ask('for Master')
    await take('Master')
    const own = await delegated('Master', 'Worker', 'for Worker')
    for (let count = 0; count < 3; count++) await ask(`another ${count}`)
    const { json } = await service.get('/api/v1/tasks?limit=1', service.tokens.worker)
    expect(json.tasks.map(({ id }: { id: string }) => id)).toEqual([own])
    expect((await service.get('/api/v1/tasks?limit=2', service.tokens.other)).json.tasks).toEqual([])
    expect((await service.get('/api/v1/tasks?limit=2')).json.tasks).toHaveLength(2)
  })
})
