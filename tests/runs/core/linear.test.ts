import { describe, expect, it } from 'vitest'
import { reduce } from '../../../src/runs/core/reduce.ts'
import { commit } from '../../../src/runs/core/transition.ts'
import { drawGraph, drawSteps, mermaidOf } from '../../../src/runs/plan/draw-graph.ts'
import { planText, readPlan } from '../../../src/runs/plan/read-plan.ts'
import type { PlanInput } from '../../../src/runs/plan/validate-plan.ts'
import {
  criticalPath,
  findCycles,
  type Graph,
  graphOf,
  type Plan,
  stepsOf,
  topologicalOrder,
} from '../../../src/runs/plan.ts'
import { graphSvg } from '../../../src/runs/report.ts'
import { createRun, type Run, type RunNode } from '../../../src/runs/run.ts'
import { definePlan } from '../define-plan.ts'
import { randomOf } from './random.ts'

type Shape = 'random' | 'chain' | 'star' | 'layers'

/** As many edges for each agent, whatever the size: linear in agents is then linear in both. */
function planOf(shape: Shape, size: number): PlanInput {
  const random = randomOf(7)
  const needs = (index: number): number[] => {
    if (index === 0) return []
    if (shape === 'chain') return [index - 1]
    if (shape === 'star') return [0]
    if (shape === 'layers')
      return index < 20 ? [] : [0, 1, 2].map((at) => Math.floor(index / 20) * 20 - 20 + at)
    return [...new Set([0, 1, 2].map(() => random.below(index)))]
  }
  const agents = Array.from({ length: size }, (_, index) => [
    `a${index}`,
    { command: 'true', depends_on: needs(index).map((at) => `a${at}`) },
  ])
  return { concurrency: shape === 'star' ? 1 : 8, agents: Object.fromEntries(agents) }
}

const plans = new Map<string, Plan>()

function definedPlan(shape: Shape, size: number): Plan {
  const key = `${shape} ${size}`
  if (!plans.has(key)) plans.set(key, definePlan(planOf(shape, size)))
  return plans.get(key)!
}

/** Counts every look at a list of edges, and every edge looked at. */
function counting(graph: Graph): { graph: Graph; steps: () => number } {
  let steps = 0
  class Counted<V> extends Map<string, V> {
    override get(name: string): V | undefined {
      steps++
      return super.get(name)
    }
  }
  const watched = <T extends object>(list: readonly T[]): readonly T[] =>
    new Proxy(list, {
      get(target, key, receiver) {
        if (typeof key === 'string' && /^\d+$/.test(key)) steps++
        return Reflect.get(target, key, receiver)
      },
    })
  const needs = new Counted([...graph.needs].map(([name, edges]) => [name, watched(edges)] as const))
  const feeds = new Counted([...graph.feeds].map(([name, edges]) => [name, watched(edges)] as const))
  steps = 0
  return { graph: { ...graph, needs, feeds }, steps: () => steps }
}

const LOOKS: Record<string, (graph: Graph) => unknown> = {
  'sorting by dependencies': topologicalOrder,
  'finding cycles': findCycles,
  'the steps of a dry run': stepsOf,
  'the drawing for a terminal': (graph) => drawGraph(graph),
  'the list of steps': (graph) => drawSteps(graph),
  'the flowchart': (graph) => mermaidOf(graph),
  'the picture': (graph) => graphSvg(graph, () => 'waiting'),
  'the longest chain': (graph) => criticalPath(graph, () => 1),
}

const SHAPES: Shape[] = ['random', 'chain', 'star', 'layers']

describe('ten times the agents take ten times the steps', () => {
  it.each(SHAPES)(
    'in every function on a graph of the shape %s',
    (shape) => {
      const stepsFor = (size: number) => {
        const graph = graphOf(definedPlan(shape, size))
        return Object.entries(LOOKS).map(([name, look]) => {
          const counted = counting(graph)
          look(counted.graph)
          return { name, steps: counted.steps() }
        })
      }
      const large = stepsFor(10_000)
      for (const [index, { name, steps }] of stepsFor(1000).entries()) {
        expect(steps, name).toBeGreaterThan(0)
        expect(large[index]!.steps, name).toBeLessThanOrEqual(steps * 10.5)
      }
    },
    60_000,
  )

  it.each(SHAPES)(
    'in a whole run of a graph of the shape %s, where an event costs the edges of its agent',
    (shape) => {
      const small = stepsOfRun(definedPlan(shape, 1000))
      expect(stepsOfRun(definedPlan(shape, 10_000))).toBeLessThanOrEqual(small * 10.5)
    },
    60_000,
  )

  it('also if a chain of 10,000 fails at its first agent', () => {
    const run = createRun({ id: 'run_1', plan: definedPlan('chain', 10_000), now: 0 })
    const tell = (event: Parameters<typeof reduce>[1]) => {
      const decided = reduce(run, event, 0)
      if (!decided.ok) throw new Error(decided.refusal.message)
      commit(run, decided.state)
    }
    tell({ type: 'begun' })
    tell({ type: 'copy_failed', node: 'a0', preparation: 1, why: 'no', recoverable: false })
    expect(run.head).toMatchObject({ outcome: 'failed', settled: { failed: 10_000 } })
  })
})

/** Runs all of it, each agent well; counts what is read and written of nodes, edges and the queue. */
function stepsOfRun(plan: Plan): number {
  let steps = 0
  class Counted<V> extends Map<string, V> {
    override get(name: string): V | undefined {
      steps++
      return super.get(name)
    }
    override set(name: string, value: V): this {
      steps++
      return super.set(name, value)
    }
    override *keys(): MapIterator<string> {
      for (const name of super.keys()) {
        steps++
        yield name
      }
    }
  }
  const created = createRun({ id: 'run_1', plan, now: 0 })
  const counted = counting(created.graph)
  const nodes: Map<string, RunNode> = new Counted(created.nodes)
  const run: Run = {
    head: created.head,
    graph: counted.graph,
    nodes,
    readyQueue: new Counted(created.readyQueue),
  }
  steps = 0
  const todo: Parameters<typeof reduce>[1][] = [{ type: 'begun' }]
  for (const event of todo) {
    const decided = reduce(run, event, 0)
    if (!decided.ok) throw new Error(decided.refusal.message)
    commit(run, decided.state)
    for (const effect of decided.effects) {
      if (effect.type === 'prepare') {
        const { node, preparation } = effect
        todo.push({ type: 'inputs_copied', node, preparation, inputsHash: 'h', outputsHash: null })
      } else if (effect.type === 'start_attempt') {
        const { node, attempt } = effect
        todo.push({ type: 'exited', node, attempt, code: 0, signal: null, lost: false, why: '' })
      } else if (effect.type === 'validate') {
        const { node, attempt } = effect
        const made = { evidence: [], outputs: [], outputsHash: 'h', summary: '' }
        todo.push({ type: 'validated', node, attempt, passed: true, ...made })
      }
    }
  }
  expect(run.head.outcome).toBe('completed')
  return steps + counted.steps()
}

describe('a plan of 10,000 agents', () => {
  it('is read from its text', () => {
    const read = readPlan(planText(planOf('random', 10_000)))
    expect(read.ok && read.value.agents.length).toBe(10_000)
  }, 60_000)
})
