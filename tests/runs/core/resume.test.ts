import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { resumeRun } from '../../../src/runs/core/reduce.ts'
import type { PlanAgentInput } from '../../../src/runs/plan/validate-plan.ts'
import { graphOf } from '../../../src/runs/plan.ts'
import { hashInputs, hashOutputs } from '../../../src/runs/prepare-node.ts'
import { createRun, type Run } from '../../../src/runs/run.ts'
import { definePlan } from '../define-plan.ts'
import { openBench } from './bench.ts'
import { randomOf } from './random.ts'
import { randomPlan } from './script.ts'
import { openWorld } from './world.ts'

const resumed = (run: Run, plan = run.graph.plan): Run => {
  const result = resumeRun(run, { plan, now: 9000 })
  if (!result.ok) throw new Error(result.error.message)
  return result.value
}

describe('resuming', () => {
  it('does not run agents with unchanged inputs again, and marks them (issue 5)', () => {
    const bench = openBench({ a: {}, b: { depends_on: ['a'], retries: 0 } })
    bench.finish('a')
    bench.finish('b', 1)
    bench.run = resumed(bench.run)
    bench.take()
    bench.tell({ type: 'begun' })
    expect(bench.taken('prepare')).toMatchObject([{ node: 'a', preparation: 2, hasPreviousResult: true }])
    bench.copied('a', 'in a', 'out a')
    expect(bench.node('a')).toMatchObject({ state: 'completed', cached: true, attempt: 1 })
    bench.finish('b')
    expect(bench.run.head).toMatchObject({ outcome: 'completed', round: 2 })
    expect(bench.node('b').attempts).toHaveLength(2)
  })

  it.each([
    ['other inputs', 'in other', 'out a'],
    ['a changed outbox', 'in a', 'out changed'],
    ['a missing outbox', 'in a', null],
  ])('runs an agent again with %s', (_, inputs, outputs) => {
    const bench = openBench({ a: {} })
    bench.finish('a')
    bench.run = resumed(bench.run)
    bench.tell({ type: 'begun' })
    bench.copied('a', inputs, outputs)
    expect(bench.node('a')).toMatchObject({
      state: 'running',
      attempt: 2,
      previousResult: null,
      cached: false,
    })
  })

  it('is refused while the run continues', () => {
    const bench = openBench({ a: {} })
    expect(resumeRun(bench.run, { plan: bench.run.graph.plan, now: 2000 })).toMatchObject({
      error: { code: 'RUN_RUNS' },
    })
  })

  it('uses the current plan, with added and removed agents', () => {
    const bench = openBench({ a: {}, b: {} })
    bench.finish('a')
    bench.finish('b')
    const plan = definePlan({ agents: { a: { command: 'true' }, c: { command: 'true', depends_on: ['a'] } } })
    bench.run = resumed(bench.run, plan)
    bench.tell({ type: 'begun' })
    bench.copied('a', 'in a', 'out a')
    expect(bench.states()).toEqual({ a: 'completed', c: 'preparing' })
  })

  it('continues after a cancellation with the completed work', () => {
    const bench = openBench({ a: {}, b: { depends_on: ['a'] } })
    bench.finish('a')
    bench.tell({ type: 'cancelled', by: 'ada', reason: 'lunch' })
    bench.run = resumed(bench.run)
    bench.tell({ type: 'begun' })
    bench.copied('a', 'in a', 'out a')
    bench.finish('b')
    expect(bench.run.head).toMatchObject({ outcome: 'completed', cancelled: null })
  })

  it('never uses the key of an effect twice', () => {
    const bench = openBench({ a: {}, b: { depends_on: ['a'], retries: 0 } })
    bench.finish('a')
    bench.finish('b', 1)
    bench.run = resumed(bench.run)
    bench.tell({ type: 'begun' })
    bench.copied('a', 'in a', 'out a')
    bench.finish('b')
    const keys = bench.take().flatMap((effect) => ('key' in effect ? [effect.key] : []))
    expect(new Set(keys).size).toBe(keys.length)
  })

  it('runs only agents that depend on a changed input, and stops where outputs stay the same', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0 }), fc.integer({ min: 1, max: 60 }), (seed, size) => {
        const random = randomOf(seed)
        const plan = definePlan(randomPlan(random, size))
        const names = plan.agents.map(({ name }) => name)
        const scripts = new Map(
          names.map((name) => [name, { talks: random.chance(0.5), turns: [], fixes: [], answers: [] }]),
        )
        // Some make the same of whatever they get; the others hand every change on.
        const steady = new Set(names.filter(() => random.chance(0.3)))
        const edited = new Map(names.map((name) => [name, 1]))
        const made = new Map<string, string>()
        let contents = new Map<string, string>()
        const options = {
          scripts,
          random,
          inputsHash: ({
            node,
            sources,
          }: {
            node: string
            sources: readonly { agent: string; outputsHash: string }[]
          }) => {
            const inputs = `${node} ${edited.get(node)} ${sources.map(({ outputsHash }) => outputsHash)}`
            const hash = hashOutputs([{ path: inputs, sha256: '' }])
            contents.set(node, hash)
            return hash
          },
          outputsHash: (node: string) => made.get(node) ?? 'nothing',
        }
        const finish = (run: Run): string[] => {
          const world = openWorld(run, options)
          world.onDecision = ({ state: { nodes } }) => {
            for (const { name, state, attempt } of nodes) {
              if (state === 'running' && attempt > 0)
                made.set(name, steady.has(name) ? 'same' : contents.get(name)!)
            }
          }
          world.tell({ type: 'begun' })
          while (!world.isOver()) if (!world.step()) throw new Error('stuck')
          expect(world.run.head.outcome).toBe('completed')
          return [...world.begun.keys()].sort()
        }
        const run = createRun({ id: 'run_1', plan, now: 0 })
        expect(finish(run)).toEqual([...names].sort())

        const again = resumed(run)
        contents = new Map()
        expect(finish(again)).toEqual([])

        const changed = new Set(names.filter(() => random.chance(0.1)))
        for (const name of changed) edited.set(name, 2)
        const graph = graphOf(plan)
        // The simple way: from the front, an agent runs if it was edited or gets something else from one that ran.
        const expected = new Set<string>()
        const differs = new Set<string>()
        for (const step of orderOf(plan.agents)) {
          const gets = graph.needs.get(step)!.some(({ from }) => differs.has(from))
          if (!changed.has(step) && !gets) continue
          expected.add(step)
          if (!steady.has(step)) differs.add(step)
        }
        expect(finish(resumed(again))).toEqual([...expected].sort())
      }),
      { numRuns: 60 },
    )
  })
})

function orderOf(agents: ReturnType<typeof definePlan>['agents']): string[] {
  const order: string[] = []
  const visit = (name: string) => {
    if (order.includes(name)) return
    for (const { agent } of agents.find((one) => one.name === name)!.dependsOn) visit(agent)
    order.push(name)
  }
  for (const { name } of agents) visit(name)
  return order
}

describe('the hash of inputs', () => {
  const BASE: PlanAgentInput = {
    command: 'make',
    instructions: { objective: 'Write.', requirements: ['short'] },
    inputs: ['brief.md'],
    checks: ['npm test'],
    depends_on: ['b'],
  }
  const files = [
    { path: 'inbox/brief.md', sha256: 'aa' },
    { path: 'inbox/b/data.json', sha256: 'bb' },
  ]
  const hashOf = (changes: Partial<PlanAgentInput> = {}, given = files, missing: string[] = []) => {
    const plan = definePlan({ agents: { a: { ...BASE, ...changes }, b: { command: 'true' } } })
    return hashInputs({ agent: plan.agents[0]!, files: given, missing })
  }

  it('does not depend on the order of files', () => {
    expect(hashOf({}, files.toReversed())).toBe(hashOf())
    expect(hashOf()).toMatch(/^[0-9a-f]{64}$/)
  })

  it.each<[string, Partial<PlanAgentInput>]>([
    ['the command', { command: 'make all' }],
    ['the instructions', { instructions: 'Write more.' }],
    ['the checks', { checks: ['npm run lint'] }],
    ['the outputs', { outputs: ['outbox/x.md'] }],
    ['the outputs of dependencies', { depends_on: [{ agent: 'b', outputs: ['outbox/data.json'] }] }],
    ['the template', { template: 'writer' }],
  ])('changes with %s', (_, changes) => {
    expect(hashOf(changes)).not.toBe(hashOf())
  })

  it.each<[string, Partial<PlanAgentInput>]>([
    ['retries', { retries: 0 }],
    ['timeouts', { timeout: '1h', stall_timeout: '1m' }],
    ['the reaction to failures', { on_error: 'escalate', depends_on: [{ agent: 'b', on_failure: 'skip' }] }],
    ['the path of an input', { inputs: ['elsewhere/brief.md'] }],
  ])('does not change with %s', (_, changes) => {
    expect(hashOf(changes)).toBe(hashOf())
  })

  it('changes with a file, its name, and with a dependency that is missing', () => {
    expect(hashOf({}, [files[0]!, { ...files[1]!, sha256: 'cc' }])).not.toBe(hashOf())
    expect(hashOf({}, [files[0]!, { ...files[1]!, path: 'inbox/b/other.json' }])).not.toBe(hashOf())
    expect(hashOf({}, files, ['b'])).not.toBe(hashOf())
  })
})
