import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { readAgent } from '../../src/agents/store.ts'
import { verifyStoredAudit } from '../../src/main.ts'
import { openPostgresStore } from '../../src/store/postgres/open.ts'
import { findTask } from '../../src/tasks/store.ts'
import type { TaskState } from '../../src/tasks/task.ts'
import { type PostgresServer, startPostgres } from '../fakes/postgres-server.ts'
import { createPuppets, type Puppets } from '../fakes/puppet-runtime.ts'
import { openTestEngine, type TestEngine } from '../harness/engine.ts'

/** The flows of delegation on PostgreSQL, where code that relies on SQLite being synchronous would fail. */

let server: PostgresServer
let url: string
let engine: TestEngine
let puppets: Puppets
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server?.stop())

const agent = { runtime: 'tmux' as const, program: 'any' as const, with: { command: 'true' } }
const TEAM = {
  agents: { Top: agent, Middle: { ...agent, parent: 'Top' }, Bottom: { ...agent, parent: 'Middle' } },
  limits: { rate: 'off' as const },
  tasks: {
    checks: {
      tests: { command: 'test -e passes' },
      slow: { command: 'until test -e go; do sleep 0.05; done' },
    },
  },
}

beforeEach(async () => {
  url = await server.createSchema()
  puppets = createPuppets()
  engine = await openTestEngine(TEAM, {
    runtimes: [puppets],
    openStore: (options) => openPostgresStore(url, options),
  })
  await vi.waitFor(() => expect(['Top', 'Middle', 'Bottom'].map(puppets.started)).toEqual([1, 1, 1]))
  rest()
})
afterEach(() => engine.close())

/** Ends the turn of every busy agent. */
function rest() {
  for (const name of ['Top', 'Middle', 'Bottom']) puppets.of(name).become('idle')
}
const taskOf = (id: string) => findTask(engine.store, id)
const becomes = (id: string, state: TaskState) =>
  vi.waitFor(async () => expect(await taskOf(id)).toMatchObject({ state }), { timeout: 10_000 })
const hears = (name: string, words: string) =>
  vi.waitFor(
    () => {
      puppets.of(name).become('idle')
      expect(
        puppets
          .of(name)
          .turns.map(({ text }) => text)
          .join('\n'),
      ).toContain(words)
    },
    { timeout: 10_000 },
  )
async function say(name: string, type: string, fields: Record<string, unknown>) {
  const receipt = await engine.say(name, type, fields)
  expect(receipt).toMatchObject({ status: 'ok' })
  return (receipt as { details: Record<string, string> }).details
}

describe('delegation on PostgreSQL', () => {
  it('works over three levels with queries in both directions (S2.9, S2.17)', async () => {
    await say('Top', 'delegate', {
      to: 'Middle',
      task: 'Plan a trip',
      context: { a: ['\u0000', { b: '😀' }] },
    })
    await becomes('task_1', 'executing')
    await say('Middle', 'delegate', { to: 'Bottom', task: 'Find a flight', message_id: 'm' })
    await becomes('task_2', 'executing')
    await becomes('task_1', 'waiting_child')
    const { question_id } = await say('Bottom', 'query', { question: 'Price or convenience?' })
    await becomes('task_2', 'waiting_parent')
    await hears('Middle', 'Price or convenience?')
    await say('Middle', 'answer', { in_response_to: question_id, answer: 'Price' })
    await hears('Bottom', 'Price')
    const { request_id } = await say('Bottom', 'request_user_input', { question: 'From where?' })
    await becomes('task_2', 'waiting_user')
    await engine.order('user_response', { in_response_to: request_id, answer: 'LAX' })
    await hears('Bottom', 'LAX')
    await say('Bottom', 'report', { status: 'completed', result: 'Flight 7', in_response_to: 'm' })
    await becomes('task_2', 'completed')
    await hears('Middle', 'Flight 7')
    await say('Middle', 'report', { status: 'completed', result: 'Booked' })
    await becomes('task_1', 'completed')
    await hears('Top', 'Booked')
    expect(await verifyStoredAudit(engine.store)).toMatchObject({ ok: true })
  })

  it('serializes concurrent events: none is lost or doubled (C25)', async () => {
    await say('Top', 'delegate', { to: 'Middle', task: 'Plan' })
    await becomes('task_1', 'executing')
    const children = await Promise.all(
      Array.from({ length: 20 }, (_, n) => say('Middle', 'delegate', { to: 'Bottom', task: `Part ${n}` })),
    )
    expect(new Set(children.map(({ task_id }) => task_id)).size).toBe(20)
    const reports = children.map(({ task_id }) => ({
      status: 'completed',
      result: 'Done',
      in_response_to: task_id,
    }))
    const receipts = await Promise.all(
      [...reports, ...reports].map((one) => engine.say('Bottom', 'report', one)),
    )
    expect(receipts.filter(({ status }) => status === 'ok')).toHaveLength(20)
    await vi.waitFor(async () =>
      expect(
        (await engine.mailOf('Middle')).filter(({ title }) => title.includes('have ended')),
      ).toHaveLength(1),
    )
  })

  it('continues after a restart, with its timers (C8)', async () => {
    await say('Top', 'delegate', { to: 'Middle', task: 'Plan' })
    await becomes('task_1', 'executing')
    await say('Middle', 'delegate', { to: 'Bottom', task: 'Part' })
    await becomes('task_2', 'executing')
    const { question_id } = await say('Bottom', 'query', { question: 'How?' })
    const before = [await taskOf('task_1'), await taskOf('task_2')]
    engine = await engine.reopen()
    await vi.waitFor(() => expect(puppets.started('Bottom')).toBe(2))
    expect([await taskOf('task_1'), await taskOf('task_2')]).toEqual(before)
    rest()
    await say('Middle', 'answer', { in_response_to: question_id, answer: 'So.' })
    await hears('Bottom', 'So.')
    await engine.clock.advance(301_000)
    // The timeout starts a new attempt.
    await vi.waitFor(async () => expect(await taskOf('task_2')).toMatchObject({ attempt: 2 }))
    await say('Bottom', 'report', { status: 'completed', result: 'Done' })
    await becomes('task_2', 'completed')
  })
})

describe('two daemons on one database', () => {
  /** Two claims of one worker: the first is being checked, the second is queued. */
  async function claimTwice() {
    await say('Top', 'delegate', { to: 'Middle', task: 'First', checks: ['slow'] })
    await say('Top', 'delegate', { to: 'Middle', task: 'Second', checks: ['tests'] })
    for (const in_response_to of ['task_1', 'task_2']) {
      await say('Middle', 'report', { status: 'completed', result: 'Done', in_response_to })
      await vi.waitFor(async () => expect((await taskOf('task_1'))?.claim?.validator?.begun).toBe(true))
    }
    expect((await taskOf('task_2'))!.claim).toMatchObject({ step: 'checks', validator: { begun: false } })
  }

  /** A second daemon with another folder, in which the checks pass, so the result shows who ran them. */
  async function openSecond() {
    const second = await openTestEngine(TEAM, {
      runtimes: [createPuppets()],
      openStore: (options) =>
        openPostgresStore(url, { ...options, identity: { ...options.identity, daemon: 'second' } }),
    })
    onTestFinished(() => second.close())
    for (const file of ['go', 'passes']) writeFileSync(join(second.folder, file), '')
    return second
  }

  it('share which claims are queued: the timer of one does not give up a claim that is queued at the other (C8)', async () => {
    await claimTwice()
    const second = await openSecond()
    const [first, waiting] = [(await taskOf('task_1'))!, (await taskOf('task_2'))!]
    await second.clock.advance(Math.max(first.due!.at, waiting.due!.at) + 1 - second.clock.now())
    // Running claims time out, on either daemon; queued ones keep their whole time.
    await vi.waitFor(async () =>
      expect((await taskOf('task_1'))!.evidence.at(-1)).toMatchObject({ outcome: 'unavailable' }),
    )
    expect(await taskOf('task_2')).toMatchObject({ claim: { validator: { daemon: 'main', begun: false } } })
    writeFileSync(join(engine.folder, 'go'), '')
    await hears('Middle', 'exit code 1')
    expect(await taskOf('task_2')).toMatchObject({ rejections: 1, claim: null })
  })

  it('take over claims of a daemon that is gone, once its lease has expired (C8)', async () => {
    await claimTwice()
    const second = await openSecond()
    // No further than needed, because checks use the same clock.
    const isTaken = async () => (await taskOf('task_2'))!.claim?.validator?.daemon !== 'main'
    for (let minutes = 0; minutes < 90 && !(await isTaken()); minutes++) await second.clock.advance(60_000)
    expect(second.clock.now() - engine.clock.now()).toBeGreaterThanOrEqual(3600_000)
    await becomes('task_2', 'completed')
    expect(await taskOf('task_2')).toMatchObject({ reason: 'reported, and its checks passed', claims: 1 })
    writeFileSync(join(engine.folder, 'go'), '')
  })

  it('share whether a worker is busy: the timer of one does not fail a task that waits for it (C8)', async () => {
    const elsewhere = { Top: {}, Middle: { parent: 'Top' } }
    const second = await openTestEngine(
      { ...TEAM, agents: elsewhere },
      {
        runtimes: [],
        openStore: (options) =>
          openPostgresStore(url, { ...options, identity: { ...options.identity, daemon: 'second' } }),
      },
    )
    onTestFinished(() => second.close())
    const becomesAt = async (state: 'busy' | 'idle') => {
      puppets.of('Middle').become(state)
      await vi.waitFor(async () =>
        expect(await readAgent(second.store, 'Middle')).toMatchObject({ session_state: state }),
      )
    }
    await becomesAt('busy')
    const delegated = await second.say('Top', 'delegate', { to: 'Middle', task: 'Later' })
    expect(delegated).toMatchObject({ status: 'ok', details: { task_id: 'task_1' } })
    await second.clock.advance(31_000)
    await vi.waitFor(async () =>
      expect(await taskOf('task_1')).toMatchObject({ state: 'analyzing', attempt: 1, failures: [] }),
    )
    // An idle agent that takes nothing has failed.
    puppets.of('Middle').arrival = new Promise(() => {})
    await becomesAt('idle')
    await second.say('Top', 'delegate', { to: 'Middle', task: 'Never taken' })
    await second.clock.advance(31_000)
    await vi.waitFor(async () => expect(await taskOf('task_2')).toMatchObject({ attempt: 2 }))
  })

  it('accept the same report at the same time once, and wake a parent once (C25)', async () => {
    const other = await openTestEngine(TEAM, {
      runtimes: [createPuppets()],
      openStore: (options) =>
        openPostgresStore(url, { ...options, identity: { ...options.identity, daemon: 'second' } }),
    })
    onTestFinished(() => other.close())
    const both = (name: string, type: string, fields: Record<string, unknown>) =>
      Promise.all([engine, other].map((one) => one.say(name, type, fields)))
    const taken = (receipts: { status: string }[]) => receipts.filter(({ status }) => status === 'ok').length
    for (let round = 1; round <= 10; round++) {
      const { task_id } = await say('Top', 'delegate', { to: 'Middle', task: `Round ${round}` })
      const { question_id } = await say('Middle', 'query', { question: 'How?', in_response_to: task_id })
      const answer = { in_response_to: question_id, answer: 'So.' }
      expect(taken(await both('Top', 'answer', answer)), `answers, round ${round}`).toBe(1)
      const children = await Promise.all(
        [engine, other].map((one) =>
          one.say('Middle', 'delegate', { to: 'Bottom', task: 'Part', in_response_to: task_id }),
        ),
      )
      expect(taken(children)).toBe(2)
      expect((await taskOf(task_id!))!.awaiting).toHaveLength(2)
      // The two children end on different daemons at the same time; the parent is woken once.
      const ids = children.map(
        (receipt) => (receipt as unknown as { details: { task_id: string } }).details.task_id,
      )
      const ended = await Promise.all(
        [engine, other].map((one, index) =>
          one.say('Bottom', 'report', { status: 'completed', result: 'Done', in_response_to: ids[index] }),
        ),
      )
      expect(taken(ended)).toBe(2)
      const { awaiting } = (await taskOf(task_id!))!
      expect(awaiting).toEqual([])
      const result = { status: 'completed', result: 'All done', in_response_to: task_id }
      expect(taken(await both('Middle', 'report', result)), `reports, round ${round}`).toBe(1)
    }
    const woken = (await engine.mailOf('Middle')).filter(({ title }) => title.includes('have ended'))
    expect(woken).toHaveLength(10)
    expect(await verifyStoredAudit(engine.store)).toMatchObject({ ok: true })
  })
})
