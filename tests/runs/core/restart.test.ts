import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  pendingEffects,
  type RunEvent,
  type RunEventType,
} from '../../../src/runs/core/events-and-effects.ts'
import { reduce } from '../../../src/runs/core/reduce.ts'
import { createRun, loadRun } from '../../../src/runs/run.ts'
import { definePlan } from '../define-plan.ts'
import { openBench } from './bench.ts'
import { randomOf } from './random.ts'
import { randomPlan, randomScript } from './script.ts'
import { openWorld, storedText } from './world.ts'

const reloaded = (bench: ReturnType<typeof openBench>) => loadRun(JSON.parse(storedText(bench.run)))
const owed = (bench: ReturnType<typeof openBench>) => pendingEffects(reloaded(bench)).map(({ key }) => key)

describe('a crash between the commit and its effects', () => {
  it('loses no effect: the stored run yields all of them under the same keys', () => {
    const bench = openBench(
      { a: { retries: 0, on_error: 'fix', fixer: 'm' } },
      { fixers: { m: { command: 'x' } } },
    )
    expect(owed(bench)).toEqual(['run_1/a/prepare/1'])
    bench.copied('a')
    expect(owed(bench)).toEqual(['run_1/a/start/1'])
    bench.tell({ type: 'started', node: 'a', attempt: 1 })
    expect(owed(bench)).toEqual(['run_1/a/follow/1'])
    bench.status('a', 'completed')
    expect(owed(bench)).toEqual(['run_1/a/stop/1', 'run_1/a/validate/1'])
    bench.validate('a', false)
    expect(owed(bench)).toEqual(['run_1/a/stop/1', 'run_1/a/fix/1'])
    bench.exit('a', 0)
    bench.tell({ type: 'fixer_done', node: 'a', fix: 1, fixed: true, why: '' })
    expect(owed(bench)).toEqual(['run_1/a/prepare/2'])
    bench.finish('a')
    expect(owed(bench)).toEqual(['run_1/report/1'])
    bench.tell({ type: 'report_written', round: 1 })
    expect(owed(bench)).toEqual([])
  })

  it('leaves exactly the unanswered effects pending, at every point of any run', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0 }), fc.integer({ min: 1, max: 15 }), (seed, size) => {
        const random = randomOf(seed)
        const plan = definePlan(randomPlan(random, size))
        const scripts = new Map(plan.agents.map(({ name }) => [name, randomScript(random, 0.5)]))
        const world = openWorld(createRun({ id: 'run_1', plan, now: 0 }), { scripts, random })
        const said = new Set<string>()
        const hear = (decided: ReturnType<typeof reduce>) => {
          if (decided.ok) for (const effect of decided.effects) if ('key' in effect) said.add(effect.key)
        }
        world.onDecision = hear
        world.tell({ type: 'begun' })
        while (!world.isOver()) {
          world.step()
          const pending = pendingEffects(world.run)
          for (const { key } of pending) expect(said).toContain(key)
          expect(new Set(pending.map(({ key }) => key)).size).toBe(pending.length)
        }
      }),
      { numRuns: 60 },
    )
  })

  it('undoes the event: reduce alone changes nothing', () => {
    const bench = openBench({ a: {}, b: { depends_on: ['a'] } })
    const before = storedText(bench.run)
    const line = [...bench.run.readyQueue]
    reduce(bench.run, { type: 'cancelled', by: 'ada', reason: 'x' }, 2000)
    reduce(
      bench.run,
      { type: 'inputs_copied', node: 'a', preparation: 1, inputsHash: 'h', outputsHash: null },
      2000,
    )
    expect(storedText(bench.run)).toBe(before)
    expect([...bench.run.readyQueue]).toEqual(line)
  })
})

const node = fc.constantFrom('a', 'b', 'c', 'nobody')
const number = fc.nat(3)
const flag = fc.boolean()
const text = fc.constantFrom('', 'why')

/** An entry per kind, so that a new kind does not compile until it is fuzzed. */
const FIELDS: { [T in RunEventType]: fc.Arbitrary<Omit<Extract<RunEvent, { type: T }>, 'type'>> } = {
  begun: fc.record({}),
  restarted: fc.record({}),
  run_timed_out: fc.record({}),
  cancelled: fc.record({ by: text, reason: text }),
  report_written: fc.record({ round: number }),
  report_failed: fc.record({ round: number, why: text }),
  inputs_copied: fc.record({
    node,
    preparation: number,
    inputsHash: text,
    outputsHash: fc.constantFrom(null, 'o'),
  }),
  copy_failed: fc.record({ node, preparation: number, why: text, recoverable: flag }),
  started: fc.record({ node, attempt: number }),
  status: fc.record({
    node,
    attempt: number,
    state: fc.constantFrom('pending', 'running', 'completed', 'failed'),
    progress: fc.constant(null),
    error: fc.constant(null),
  }),
  active: fc.record({ node, attempt: number }),
  metered: fc.record({
    node,
    attempt: number,
    spent: fc.constant({ inputTokens: 1, outputTokens: 1, cost: null }),
  }),
  exited: fc.record({
    node,
    attempt: number,
    code: fc.constantFrom(0, 1, null),
    signal: fc.constant(null),
    lost: flag,
    why: text,
  }),
  stalled: fc.record({ node }),
  timed_out: fc.record({ node }),
  validated: fc.record({
    node,
    attempt: number,
    passed: flag,
    evidence: fc.constant([]),
    outputs: fc.constant([]),
    outputsHash: text,
    summary: text,
  }),
  retry_due: fc.record({ node }),
  fixer_done: fc.record({ node, fix: number, fixed: flag, why: text }),
  person_decided: fc.record({
    node,
    ask: number,
    decision: fc.constantFrom('retry', 'fixed', 'skip', 'fail'),
    by: text,
  }),
  ask_expired: fc.record({ node }),
}

const EVENT = fc.oneof(
  ...Object.entries(FIELDS).map(([type, fields]) => fields.map((rest) => ({ ...rest, type }) as RunEvent)),
)

describe('random events in any order', () => {
  it('never throw, keep the counts right, and change nothing if they are refused', () => {
    const plan = definePlan({
      concurrency: 2,
      timeout: '1h',
      agents: {
        a: { command: 'x', retries: 1, on_error: 'escalate', stall_timeout: '5s' },
        b: { command: 'x', retries: 1, on_error: 'fix', fixer: 'm', depends_on: ['a'] },
        c: {
          command: 'x',
          retries: 0,
          on_error: 'skip',
          depends_on: [{ agent: 'b', on_failure: 'proceed' }],
        },
      },
      fixers: { m: { command: 'x' } },
    })
    const acts = fc.array(fc.tuple(EVENT, fc.constantFrom(0, 0, 500, 10_000)), {
      minLength: 1,
      maxLength: 80,
    })
    fc.assert(
      fc.property(acts, fc.boolean(), (events, begin) => {
        const world = openWorld(createRun({ id: 'run_1', plan, now: 0 }), {
          scripts: new Map(),
          random: randomOf(1),
          passive: true,
        })
        if (begin) world.tell({ type: 'begun' })
        for (const [event, ms] of events) {
          world.pass(ms)
          const before = world.run.head
          const decided = world.tell(event)
          if (!decided.ok) expect(world.run.head).toBe(before)
          world.audit()
        }
      }),
      { numRuns: 500 },
    )
  })
})
