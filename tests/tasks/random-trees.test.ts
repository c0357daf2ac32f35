import { rmSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { AuditEntry } from '../../src/audit/entry.ts'
import { AppError } from '../../src/base/errors.ts'
import { formatId, parseId } from '../../src/base/ids.ts'
import type { CommandEntry } from '../../src/commands/commands.ts'
import type { Models } from '../../src/llm/llm.ts'
import { mailOfTask } from '../../src/messages/messages.ts'
import { readHumanRequests } from '../../src/people/people.ts'
import type { Receipt } from '../../src/protocol/receipt.ts'
import { readTasks } from '../../src/tasks/store.ts'
import { isEnd, type Task } from '../../src/tasks/task.ts'
import { createPuppets } from '../fakes/puppet-runtime.ts'
import { agent, decide, OPERATOR, openTestEngine, type TestEngine } from '../harness/engine.ts'

const PARENT: Record<string, string | undefined> = { Top: undefined, A: 'Top', B: 'Top', C: 'A', D: 'B' }
const WORKERS = Object.keys(PARENT)
const NAMES = [...WORKERS, 'Reviewer']

/** For a long search: ORCHUB_TREES=1000. */
const RUNS = Number(process.env.ORCHUB_TREES ?? 5)
/** Runs for shrinking a failing list. Counted instead of timed, so that a slow machine does the same. */
const SHRINKS = 100
/** A guard against endless runs; one takes a second or less. */
const LONGEST_RUN_MS = 10_000

/** The next act; its numbers select the agent and the task. */
const ACTS = [
  ...['order', 'delegate', 'delegate', 'report', 'report', 'report', 'rest', 'rest', 'rest', 'rest'],
  ...['query', 'answer', 'ask', 'touch', 'decide', 'decide', 'judge', 'judge'],
  ...['steer', 'exit', 'crash', 'wait', 'again', 'meddle'],
] as const
const act = fc.record({ what: fc.constantFrom(...ACTS), a: fc.nat(99), b: fc.nat(99), c: fc.nat(99) })
type Act = typeof act extends fc.Arbitrary<infer T> ? T : never

/** In milliseconds; the last exceeds the time that a person has to answer. */
const WAITS = [0, 500, 500, 1000, 2000, 5000, 5000, 31_000, 31_000, 301_000, 1_000_000, 90_000_000]
/** The first tree: three levels. */
const SEED: Act[] = [
  { what: 'order', a: 0, b: 0, c: 0 },
  { what: 'delegate', a: 0, b: 1, c: 0 },
  { what: 'delegate', a: 0, b: 2, c: 0 },
  { what: 'delegate', a: 1, b: 1, c: 0 },
  { what: 'delegate', a: 2, b: 1, c: 0 },
]

const pick = <T>(list: readonly T[], n: number): T | undefined => list[n % list.length]

/** A whole team on a real store, driven by the acts; only `wait` lets time pass. */
async function openTrees(judge: 'off' | 'wise' | 'Reviewer') {
  const puppets = Object.assign(createPuppets(), { remembers: true })
  /** A command that needs approval, and how often it was performed. */
  const touched: string[] = []
  const touch: CommandEntry = {
    definition: { type: 'touch', summary: 'Touch it', fields: z.object({ what: z.string() }), example: '' },
    handler: {
      decide: () => ({ verdict: 'ask', rule: 'test', reason: 'it is delicate' }),
      handle: ({ tx }, { what }) => {
        tx.afterCommit(() => touched.push(String(what)))
        return { status: 'ok', result: 'touched' }
      },
    },
  }
  let judgements = 0
  const models = {
    about: () => undefined,
    stream: () => Promise.reject(new Error('not here')),
    async generateObject() {
      const completed = ++judgements % 3 !== 0
      return { ok: true, value: { completed, reason: 'so it seems' }, spending: {} }
    },
  } as unknown as Models
  const runtime = { runtime: 'tmux' as const, program: 'any' as const, with: { command: 'true' } }
  const agents = Object.fromEntries(
    NAMES.map((name) => [name, { ...runtime, ...(PARENT[name] && { parent: PARENT[name] }) }]),
  )
  let engine: TestEngine = await openTestEngine(
    {
      agents,
      limits: { rate: 'off' },
      models: { wise: { provider: 'openai', model: 'm' } },
      tasks: { judge, retries: 1 },
    },
    { runtimes: [puppets], models, commands: [touch] },
  )
  const entries: AuditEntry[] = []
  const approved: string[] = []
  let said: (() => Promise<Receipt>) | undefined
  let count = 0

  const tasks = () => readTasks(engine.store, { which: 'all', parties: 'all', limit: 1000 })
  const openTasks = async () => (await tasks()).filter(({ state }) => !isEnd(state))

  /** Sends with an idempotency key, so that it can be repeated. */
  async function say(name: string, type: string, fields: Record<string, unknown>) {
    const principal = name === 'operator' ? OPERATOR : agent(name)
    const idempotencyKey = `k${++count}`
    said = () => engine.handle(principal, { type, fields }, { channel: 'text', idempotencyKey })
    await said()
  }

  const DO: Record<Act['what'], (act: Act) => Promise<unknown>> = {
    order: async ({ a }) => say('operator', 'delegate', { to: pick(WORKERS, a), task: `Do ${++count}` }),
    async delegate({ a, b, c }) {
      const from = pick(['Top', 'A', 'B'], a)!
      const children = WORKERS.filter((name) => PARENT[name] === from)
      const own = pick(
        (await openTasks()).filter(({ agent: worker }) => worker === from),
        c,
      )
      const about = own === undefined ? {} : { in_response_to: own.id }
      await say(from, 'delegate', {
        to: pick(children, b),
        task: `Do ${++count}`,
        requires_response: b % 5 > 0,
        ...about,
      })
    },
    async report({ a, b, c }) {
      const task = pick(await openTasks(), a)
      if (task === undefined) return
      const status = pick(['completed', 'completed', 'partial', 'needs_help'], b)
      await say(task.agent, 'report', {
        in_response_to: task.id,
        status,
        result: c % 7 === 0 ? ' ' : `R${++count}`,
      })
    },
    async query({ a, b }) {
      const task = pick(await openTasks(), a)
      if (task === undefined) return
      await say(task.agent, 'query', {
        in_response_to: task.id,
        question: 'Which?',
        requires_response: b % 4 > 0,
      })
    },
    async answer({ a, b, c }) {
      const open = (await openTasks()).flatMap(({ questions }) => questions)
      const question = pick(open, a)
      if (question === undefined) return
      await say(question.to, 'answer', { in_response_to: question.id, answer: b % 6 === 0 ? '' : `So ${c}` })
    },
    async ask({ a }) {
      const task = pick(await openTasks(), a)
      if (task !== undefined)
        await say(task.agent, 'request_user_input', { in_response_to: task.id, question: 'Where?' })
    },
    touch: async ({ a }) => say(pick(WORKERS, a)!, 'touch', { what: `thing ${++count}` }),
    async decide({ a, b }) {
      const row = pick(await readHumanRequests(engine.store, 'open', 100), a)
      if (row === undefined) return
      const decision = row.kind === 'input' ? 'answer' : pick(['approve', 'reject'] as const, b)!
      try {
        await decide(engine, OPERATOR, formatId('req', row.id), { decision, comment: 'LAX' })
        if (decision === 'approve' && row.purpose === 'command')
          approved.push(JSON.parse(row.action!).fields.what)
      } catch (error) {
        if (!(error instanceof AppError)) throw error
      }
    },
    async judge({ a, b }) {
      const task = pick(
        (await openTasks()).filter(({ claim }) => claim !== null),
        a,
      )
      if (task === undefined) return
      const claim = Math.max(1, task.claim!.number - (b % 4 === 0 ? 1 : 0))
      await say('Reviewer', 'judge', { task_id: task.id, claim, completed: b % 3 > 0, reason: 'I looked' })
    },
    async steer({ a, b, c }) {
      const task = pick(await openTasks(), a)
      const actions = [
        'cancel',
        'follow_up',
        'accept',
        'fail',
        'skip',
        'take_over',
        'hold',
        'release',
        'extend',
      ]
      const by = pick(['operator', task?.delegator ?? 'Top', task?.agent ?? 'Top'], c)!
      if (task !== undefined)
        await say(by, 'task_action', {
          task_id: task.id,
          action: pick(actions, b),
          text: 'because',
          seconds: 60,
        })
    },
    async rest({ a }) {
      const name = pick(NAMES, a)!
      if (puppets.started(name) > 0 && puppets.of(name).ended === undefined) puppets.of(name).become('idle')
    },
    async exit({ a }) {
      const name = pick(NAMES, a)!
      if (puppets.started(name) > 0 && puppets.of(name).ended === undefined)
        puppets.of(name).become('exited', 'signal 9')
    },
    async crash() {
      const { entries: seen } = engine
      engine = await engine.reopen()
      entries.push(...seen)
    },
    wait: async ({ a }) => engine.clock.advance(pick(WAITS, a)!),
    again: async () => said?.(),
    /** An agent sends something about a task that isn't its own. */
    async meddle({ a, b, c }) {
      const task = pick(await tasks(), a)
      if (task === undefined) return
      const others = NAMES.filter((name) => name !== task.agent && name !== task.delegator)
      const by = pick(others, b)!
      const id = task.id
      const before = (await tasks()).find((one) => one.id === id)!
      const words = pick(
        [
          ['report', { in_response_to: id, status: 'completed', result: 'Mine now' }],
          ['task_action', { task_id: id, action: 'cancel' }],
          ['task_action', { task_id: id, action: 'accept' }],
          ['answer', { in_response_to: id, answer: 'No' }],
        ] as const,
        c,
      )!
      await engine.say(by, words[0], words[1])
      const after = (await tasks()).find((one) => one.id === id)!
      if (after.version !== before.version) throw new Error(`${by} moved ${id} with ${words[0]}`)
    },
  }

  return {
    async take(one: Act) {
      await DO[one.what](one)
      await engine.clock.advance(0)
    },
    tasks,
    touched,
    approved,
    puppets,
    entries: () => [...entries, ...engine.entries],
    store: () => engine.store,
    /** No more acts; only time passes. */
    async fadeOut() {
      for (const task of await openTasks())
        if (task.held !== null) await engine.order('task_action', { task_id: task.id, action: 'release' })
      for (let hours = 0; hours < 24 * 10; hours++) {
        if ((await openTasks()).length === 0) return
        await engine.clock.advance(3600_000)
      }
    },
    async close() {
      await engine.engine.close()
      rmSync(engine.folder, { recursive: true, force: true })
    },
  }
}

type Trees = Awaited<ReturnType<typeof openTrees>>

function expectNoOrphans(tasks: readonly Task[]) {
  const byId = new Map(tasks.map((task) => [task.id, task]))
  for (const { id, parent, state, requiresResponse } of tasks) {
    const above = parent === null ? undefined : byId.get(parent)!
    if (above === undefined || isEnd(state) || !isEnd(above.state)) continue
    if (requiresResponse || above.state === 'cancelled') throw new Error(`${id} is an orphan of ${parent}`)
  }
}

async function expectSingleEffects(trees: Trees) {
  const entries = trees.entries()
  for (const task of await trees.tasks()) {
    expect(isEnd(task.state), `${task.id} is ${task.state}`).toBe(true)
    expect([task.reason, task.endedAt]).not.toContain(null)
    const ends = entries.filter(
      ({ type, data }) => data?.task_id === task.id && type === `task.${task.state}`,
    )
    expect(new Set(ends.map(({ seq }) => seq)).size, `${task.id} ended`).toBe(1)
    const mail = await mailOfTask(trees.store(), parseId('task', task.id)!)
    const kinds = mail.map(({ task: about }) => about!.kind)
    expect(kinds.filter((kind) => kind === 'report').length).toBe(
      task.state === 'completed' && kinds.includes('report') ? 1 : 0,
    )
    expect(kinds.filter((kind) => kind === 'delegate').length).toBeLessThanOrEqual(task.attempt)
  }
  for (const name of NAMES) {
    const given = trees.puppets.given(name)
    expect(given.length, `${name} was given something twice`).toBe(new Set(given).size)
  }
  // Performed exactly once for each approval, and never without one (C9).
  expect(trees.touched.toSorted()).toEqual(trees.approved.toSorted())
}

/** fast-check prints its seed and the shortest list of acts that fails. */
describe('random trees in the whole engine, with crashes', () => {
  it.each(['off', 'wise', 'Reviewer'] as const)(
    'judged by %s: every task ends, no orphan, nothing twice, nothing approved by accident (S2.1, C7, C9, C25)',
    async (judge) => {
      let hasFailed = false
      let shrinks = 0
      await fc.assert(
        fc.asyncProperty(fc.array(act, { minLength: 10, maxLength: 60, size: 'max' }), async (acts) => {
          if (hasFailed) fc.pre(++shrinks <= SHRINKS)
          const trees = await openTrees(judge)
          try {
            for (const name of NAMES) trees.puppets.of(name).become('idle')
            for (const one of [...SEED, ...acts]) {
              await trees.take(one)
              expectNoOrphans(await trees.tasks())
            }
            await trees.fadeOut()
            await expectSingleEffects(trees)
          } catch (error) {
            hasFailed = true
            throw error
          } finally {
            await trees.close()
          }
        }),
        { numRuns: RUNS },
      )
    },
    (RUNS + SHRINKS) * LONGEST_RUN_MS,
  )
})
