import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { timersIn } from '../../../src/runs/core/events-and-effects.ts'
import { createRun, isSettled } from '../../../src/runs/run.ts'
import { definePlan } from '../define-plan.ts'
import { randomOf } from './random.ts'
import { expectedOf } from './reference.ts'
import { randomPlan, randomScript } from './script.ts'
import { openWorld, type World } from './world.ts'

interface Trouble {
  crashes: number
  repeats: number
}

function play(seed: number, size: number, { crashes, repeats }: Trouble) {
  const random = randomOf(seed)
  const plan = definePlan(randomPlan(random, size))
  const trouble = random.pick([0, 0.1, 0.5, 1])
  const scripts = new Map(plan.agents.map(({ name }) => [name, randomScript(random, trouble)]))
  const run = createRun({ id: 'run_1', plan, now: 0 })
  const world = openWorld(run, { scripts, random })
  world.tell({ type: 'begun' })
  let steps = 0
  while (!world.isOver()) {
    if (++steps > 200 * size + 1000) throw new Error('The run does not end')
    if (!world.step()) throw new Error(`Nothing can happen: ${stuck(world)}`)
    if (random.chance(repeats)) {
      const repeated = world.repeat()
      if (repeated?.ok && repeated.effects.some(({ type }) => type !== 'note')) {
        throw new Error(`A repeated event caused ${JSON.stringify(repeated.effects)}`)
      }
    }
    if (random.chance(crashes)) world.crash(random.chance(0.5))
    if (random.chance(5 / size)) world.audit()
  }
  world.audit()
  return { world, expected: expectedOf(plan, scripts), plan }
}

const stuck = ({ run }: World) =>
  [...run.nodes.values()]
    .filter(({ settledAt }) => settledAt === null)
    .map(({ name, state }) => `${name} ${state}`)

function compare({ world, expected }: ReturnType<typeof play>) {
  const actual = new Map(
    [...world.run.nodes].map(([name, { state, attempts }]) => [
      name,
      { state, attempts: attempts.filter(({ outcome }) => outcome !== 'lost').length },
    ]),
  )
  expect(Object.fromEntries(actual)).toEqual(Object.fromEntries(expected))
}

const SEED = fc.integer({ min: 0, max: 2 ** 31 })
const SIZE = fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 60 }))

describe('random graphs with random failures and policies', () => {
  it('end like a simple reference, in whatever order events come (S4.12, S4.15, C7, C22)', () => {
    fc.assert(
      fc.property(SEED, SIZE, (seed, size) => compare(play(seed, size, { crashes: 0, repeats: 0 }))),
      { numRuns: 200 },
    )
  })

  it('end the same when events come twice or late (C25)', () => {
    fc.assert(
      fc.property(SEED, SIZE, (seed, size) => compare(play(seed, size, { crashes: 0, repeats: 0.5 }))),
      { numRuns: 120 },
    )
  })

  it('end the same when the service and the machine crash at any point (issue 5)', () => {
    fc.assert(
      fc.property(SEED, SIZE, (seed, size) => compare(play(seed, size, { crashes: 0.05, repeats: 0.1 }))),
      { numRuns: 120 },
    )
  })

  it('work with up to 500 agents', () => {
    fc.assert(
      fc.property(SEED, fc.integer({ min: 300, max: 500 }), (seed, size) =>
        compare(play(seed, size, { crashes: 2 / size, repeats: 0.05 })),
      ),
      { numRuns: 10 },
    )
  })

  it('end soon when they are cancelled, and start no agent afterwards', () => {
    fc.assert(
      fc.property(SEED, SIZE, (seed, size) => {
        const random = randomOf(seed)
        const plan = definePlan(randomPlan(random, size))
        const scripts = new Map(plan.agents.map(({ name }) => [name, randomScript(random, 0.5)]))
        const world = openWorld(createRun({ id: 'run_1', plan, now: 0 }), { scripts, random })
        world.tell({ type: 'begun' })
        for (let steps = random.below(size * 5); steps > 0 && !world.isOver(); steps--) world.step()
        const isLate = world.run.head.outcome !== null
        const done = new Map([...world.run.nodes].filter(([, { state }]) => isSettled(state)))
        expect(world.tell({ type: 'cancelled', by: 'ada', reason: 'enough' }).ok).toBe(!isLate)
        world.onDecision = ({ effects }) => {
          const begins = effects.filter(({ type }) =>
            ['prepare', 'start_attempt', 'fix', 'validate'].includes(type),
          )
          expect(begins).toEqual([])
        }
        while (!world.isOver()) {
          if (!world.step()) throw new Error(`Nothing can happen: ${stuck(world)}`)
          if (random.chance(0.1)) world.crash(false)
        }
        for (const [name, { state }] of world.run.nodes)
          expect(state).toBe(done.get(name)?.state ?? 'cancelled')
        expect([...world.questions.keys(), ...timersIn(world.run)]).toEqual([])
        if (done.size < size) expect(world.run.head.outcome).toBe('cancelled')
      }),
      { numRuns: 100 },
    )
  })
})
