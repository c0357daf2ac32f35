import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { RunUpdate } from '../../src/api/contract.ts'
import { AppError } from '../../src/base/errors.ts'
import { createClient } from '../../src/client/client.ts'
import { openTestService, type TestService } from '../harness/service.ts'
import { modelsAt, openServer } from '../llm/harness.ts'

let service: TestService
afterEach(() => service.close())

const MADE = 'echo Made what was asked for. > outbox/summary.md; echo x > outbox/x.txt'

function folder(): string {
  const path = join(service.folder, 'plans')
  mkdirSync(path, { recursive: true })
  return path
}
const client = () => createClient({ url: service.url, token: service.tokens.operator })
const start = (plan: string) => client().startRun({ plan, folder: folder() })

async function eventsOf(id: string): Promise<RunUpdate[]> {
  const events: RunUpdate[] = []
  for await (const event of client().runEvents(id)) events.push(event)
  return events
}

describe('POST /api/v1/runs', () => {
  it('runs a plan and streams all its events; the end comes after the report', async () => {
    service = await openTestService()
    const { run_id } = await start(
      `name: Small\nagents: { a: { command: "${MADE}" }, b: { command: "${MADE}", depends_on: [a] } }`,
    )
    const events = await eventsOf(run_id)
    expect(events[0]).toMatchObject({ type: 'begun', round: 1, agents: 2 })
    expect(events.at(-1)).toMatchObject({ type: 'end', outcome: 'completed' })
    const moves = events.flatMap((event) => (event.type === 'node' ? [`${event.node} ${event.state}`] : []))
    expect(moves.indexOf('a completed')).toBeLessThan(moves.indexOf('b running'))
    const run = await client().run(run_id)
    expect(run).toMatchObject({
      id: run_id,
      name: 'Small',
      state: 'completed',
      counts: { completed: 2 },
      by: 'operator',
    })
    expect(run.nodes[1]).toMatchObject({
      name: 'b',
      depends_on: ['a'],
      waits_for: [],
      attempt: 1,
      cached: false,
    })
    expect(readFileSync(run.report!, 'utf8')).toContain('# Small')
    expect((await client().runs()).runs.map(({ id }) => id)).toEqual([run_id])
  })

  it('resumes a stream of events after Last-Event-ID without a gap', async () => {
    service = await openTestService()
    const { run_id } = await start(`agents: { a: { command: "${MADE}" } }`)
    const all = await eventsOf(run_id)
    const rest: RunUpdate[] = []
    for await (const event of client().runEvents(run_id, { after: all[1]!.seq })) rest.push(event)
    expect(rest).toEqual(all.slice(2))
  })

  it('starts one run for one idempotency key (C25)', async () => {
    service = await openTestService()
    const body = { plan: `agents: { a: { command: "${MADE}" } }`, folder: folder() }
    const one = await client().startRun(body, { idempotencyKey: 'same' })
    const two = await client().startRun(body, { idempotencyKey: 'same' })
    expect(two).toEqual(one)
    await expect(client().startRun({ ...body, name: 'x' }, { idempotencyKey: 'same' })).rejects.toMatchObject(
      {
        code: 'IDEMPOTENCY_CONFLICT',
      },
    )
  })

  it('refuses mistakes with their positions, invalid folders, and agents', async () => {
    service = await openTestService()
    await expect(start('agents:\n  a: { command: x, depends_on: [nobody] }')).rejects.toMatchObject({
      code: 'PLAN_INVALID',
      status: 422,
      message: expect.stringMatching(/^the plan:2:.*There is no agent "nobody"/),
    })
    const plan = 'agents:\n  a: { agent: Nobody }'
    await expect(client().startRun({ plan, folder: folder(), file: 'my/team.yml' })).rejects.toMatchObject({
      message: expect.stringMatching(/^my\/team\.yml:2:/),
    })
    await expect(start('agents: { a: { agent: Nobody } }')).rejects.toMatchObject({ code: 'PLAN_INVALID' })
    const nowhere = client().startRun({ plan: 'agents: { a: { command: x } }', folder: 'relative' })
    await expect(nowhere).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
    expect((await service.get('/api/v1/runs', service.tokens.worker)).status).toBe(403)
    await expect(client().run('run_9')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  it('cancels a run and resumes it', async () => {
    service = await openTestService()
    const { run_id } = await start(`agents: { a: { command: "test -e ../../../go || sleep 300; ${MADE}" } }`)
    await vi.waitFor(async () => expect((await client().run(run_id)).nodes[0]!.state).toBe('running'))
    expect(await client().cancelRun(run_id, { reason: 'enough' })).toEqual({ run_id, cancelled: true })
    expect((await eventsOf(run_id)).at(-1)).toMatchObject({ type: 'end', outcome: 'cancelled' })
    expect((await client().run(run_id)).cancelled).toBe('operator: enough')
    mkdirSync(join(folder(), 'go'))
    expect(await client().resumeRun(run_id)).toEqual({ run_id, round: 2, resumed: true })
    expect((await eventsOf(run_id)).at(-1)).toMatchObject({ type: 'end', outcome: 'completed', round: 2 })
  })

  it('starts only the requested round', async () => {
    service = await openTestService()
    const { run_id } = await start('agents: { a: { command: "false", retries: 0 } }')
    await eventsOf(run_id)
    const resume = (round: number) => client().resumeRun(run_id, { round })
    expect(await resume(1)).toEqual({ run_id, round: 1, resumed: false })
    await expect(resume(3)).rejects.toMatchObject({ code: 'CONFLICT' })
    const both = await Promise.all([resume(2), resume(2)])
    expect(both.map(({ round }) => round)).toEqual([2, 2])
    expect(both.filter(({ resumed }) => resumed)).toHaveLength(1)
    await eventsOf(run_id)
    expect(await resume(2)).toEqual({ run_id, round: 2, resumed: false })
    await expect(client().resumeRun(run_id, { round: 2, fresh: true })).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('ended before it could be changed'),
    })
  })

  it('refuses to change a run that has not ended', async () => {
    service = await openTestService()
    const plan = (name: string) =>
      `agents: { ${name}: { command: "until test -e ../../../go; do sleep 0.02; done; ${MADE}" } }`
    const { run_id } = await start(plan('a'))
    const resume = (order: object) => client().resumeRun(run_id, order)
    const left = { run_id, round: 1, resumed: false }
    expect(await resume({ plan: plan('a'), folder: folder(), concurrency: 32 })).toEqual(left)
    for (const order of [
      { plan: plan('b') },
      { folder: service.folder },
      { concurrency: 7 },
      { fresh: true },
      { plan: plan('a'), fresh: true },
    ]) {
      await expect(resume(order)).rejects.toMatchObject({
        code: 'CONFLICT',
        hint: expect.stringContaining(`orc run cancel ${run_id}`),
      })
    }
    expect(await resume({})).toEqual(left)
    mkdirSync(join(folder(), 'go'))
    expect((await eventsOf(run_id)).at(-1)).toMatchObject({ type: 'end', outcome: 'completed', round: 1 })
  })

  it('sends a message to an agent, by the route and as a command, with its type', async () => {
    service = await openTestService()
    const { run_id } = await start('messages: true\nagents: { a: { command: "sleep 60" } }')
    const byRoute = await client().sendToRun(run_id, { to: 'a', type: 'question', content: 'Which one?' })
    const byDefault = await client().sendToRun(run_id, { to: 'a', content: 'Take your time.' })
    const message = { id: run_id, to: 'a', kind: 'answer', content: 'The second one.' }
    const receipt = await client().command({ type: 'send_to_run', ...message })
    const byCommand = receipt.status === 'ok' ? (receipt.details as { file: string }) : undefined
    const { place } = await client().run(run_id)
    const typeIn = (file = '') => JSON.parse(readFileSync(join(place, 'messages', file), 'utf8')).type
    expect([byRoute, byDefault, byCommand].map((sent) => typeIn(sent?.file))).toEqual([
      'question',
      'update',
      'answer',
    ])
    await client().cancelRun(run_id)
  })

  it('asks people by an ordinary request, which the verdict route answers (C9)', async () => {
    service = await openTestService()
    const { run_id } = await start('agents: { a: { command: "false", retries: 0, on_error: escalate } }')
    await vi.waitFor(async () => expect((await client().run(run_id)).nodes[0]!.state).toBe('asking'))
    const { request_id, waits_for } = (await client().run(run_id)).nodes[0]!
    expect(waits_for).toEqual([`a person to decide (${request_id})`])
    const request = await client().humanRequest(request_id!)
    expect(request).toMatchObject({ choices: ['retry', 'fixed', 'skip', 'fail'], decisions: ['answer'] })
    await client().decide(request_id!, { decision: 'answer', comment: '3' })
    expect((await eventsOf(run_id)).at(-1)).toMatchObject({ type: 'end', outcome: 'partial' })
    const run = await client().run(run_id)
    expect(run.nodes[0]!.reason).toContain('operator decided: skip')
  })

  it('reports in Markdown and as one page', async () => {
    service = await openTestService()
    const { run_id } = await start(`name: Paper\nagents: { a: { command: "${MADE}" } }`)
    await eventsOf(run_id)
    expect(await client().runReport(run_id)).toContain('# Paper')
    const page = await service.get(`/api/v1/runs/${run_id}/report?format=html`)
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8')
    expect(page.text).toContain('<svg')
  })
})

describe('while the disk is full', () => {
  it('followers of a run and health checks get the reason', async () => {
    service = await openTestService()
    const { run_id } = await start(
      `agents: { a: { command: "until test -e ../../../enough; do sleep 0.02; done; ${MADE}" } }`,
    )
    const followed = async (events: RunUpdate[]) => {
      for await (const event of client().runEvents(run_id)) events.push(event)
    }
    const events: RunUpdate[] = []
    const following = followed(events)
    await vi.waitFor(() => expect(events.some(({ text }) => text.includes('a is running'))).toBe(true))
    const { write } = service.store
    service.store.write = () => Promise.reject(new AppError('STORE_FULL', 'No space left'))
    writeFileSync(join(folder(), 'enough'), '')
    const text = 'the disk is full: the run waits for free space'
    await vi.waitFor(() => expect(events.at(-1)).toMatchObject({ type: 'note', text: `${run_id}: ${text}` }))
    expect(await client().run(run_id)).toMatchObject({ state: 'running', trouble: text })
    expect((await client().runs({ state: 'all' })).runs).toMatchObject([{ id: run_id, trouble: text }])
    expect((await client().state()).troubles).toEqual([{ run_id, text }])
    const worker = createClient({ url: service.url, token: service.tokens.worker })
    expect(await worker.state()).not.toHaveProperty('troubles')
    expect(await client().health()).toEqual({
      status: 'ok',
      trouble: 'the disk is full and a run is waiting for space',
    })
    // A later client gets it as well.
    const later: RunUpdate[] = []
    const followingLater = followed(later)
    await vi.waitFor(() => expect(later.map((event) => event.text)).toContain(`${run_id}: ${text}`))
    service.store.write = write
    await vi.waitFor(async () => {
      await service.clock.advance(1000)
      expect(events.at(-1)).toMatchObject({ type: 'end', outcome: 'completed' })
    }, 10_000)
    await Promise.all([following, followingLater])
    expect(events.map((event) => event.text)).toContain(`${run_id}: the run continues`)
    expect(await client().health()).toEqual({ status: 'ok' })
  })
})

describe('POST /api/v1/plans', () => {
  const MODELS = {
    models: {
      fast: { provider: 'openai-compatible' as const, model: 'x', base_url: 'http://127.0.0.1:1/v1' },
    },
    runs: { planner: 'fast' },
  }
  const agent = (name: string, depends_on: unknown[] = []) => ({
    ...{ name, by: 'command', who: 'make it', template: 'generic', objective: `Make ${name}`, context: '' },
    ...{
      requirements: [],
      success_criteria: [],
      constraints: [],
      outputs: [`outbox/${name}.md`],
      depends_on,
    },
  })

  async function openWith(...says: object[]) {
    let calls = 0
    const server = await openServer(() => ({
      text: JSON.stringify(says[Math.min(calls++, says.length - 1)]),
    }))
    service = await openTestService(MODELS as never, { models: modelsAt(server.url, { retries: 0 }) })
    return { calls: () => calls }
  }

  it('returns a valid plan, and runs nothing', async () => {
    await openWith({
      name: 'Trip',
      agents: [agent('a'), agent('b', [{ agent: 'a', outputs: ['outbox/a.md'] }])],
    })
    const { plan, problems, model } = await client().proposePlan({ goal: 'Plan a trip' })
    expect([problems, model]).toEqual([[], 'fast'])
    expect(plan).toContain('goal: Plan a trip')
    expect((await client().runs()).runs).toEqual([])
  })

  it('asks once more for a plan with mistakes, and then shows them', async () => {
    const circle = {
      name: 'Circle',
      agents: [agent('a', [{ agent: 'b', outputs: [] }]), agent('b', [{ agent: 'a', outputs: [] }])],
    }
    const { calls } = await openWith(circle)
    const { problems } = await client().proposePlan({ goal: 'Go round' })
    expect(calls()).toBe(2)
    expect(problems[0]!.message).toContain('waits for itself')
  })

  it('explains what to do if no planner is configured', async () => {
    service = await openTestService()
    await expect(client().proposePlan({ goal: 'x' })).rejects.toMatchObject({
      code: 'NOT_FOUND',
      hint: expect.stringContaining('runs: { planner: NAME }'),
    })
  })
})
