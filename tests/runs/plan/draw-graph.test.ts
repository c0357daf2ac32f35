import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { drawGraph, drawSteps, mermaidOf } from '../../../src/runs/plan/draw-graph.ts'
import type { PlanInput } from '../../../src/runs/plan/validate-plan.ts'
import { graphOf } from '../../../src/runs/plan.ts'
import { randomOf } from '../core/random.ts'
import { randomPlan } from '../core/script.ts'
import { definePlan } from '../define-plan.ts'

const graph = (agents: PlanInput['agents']) => graphOf(definePlan({ agents }))

const TEAM = graph({
  collector: {},
  schema: {},
  notes: { depends_on: ['collector'] },
  charts: { depends_on: ['collector'] },
  legend: { depends_on: ['charts'] },
  analyst: { depends_on: [{ agent: 'schema' }, { agent: 'collector', on_failure: 'skip' }] },
  writer: { depends_on: ['analyst', { agent: 'charts', on_failure: 'proceed' }] },
  editor: { depends_on: ['writer'] },
})

describe('the drawing for a terminal', () => {
  it('shows every agent once, below its last dependency', () => {
    expect(drawGraph(TEAM)).toBe(
      [
        '╭ collector',
        '├── notes',
        '├ charts',
        '╰ legend',
        '╭ schema',
        '├ analyst  also after collector (or skip)',
        '├ writer  also after charts (or proceed)',
        '╰ editor',
      ].join('\n'),
    )
  })

  it('branches off smaller subtrees, and names other dependencies and policies', () => {
    const drawn = drawGraph(
      graph({
        a: {},
        b: { depends_on: [{ agent: 'a', on_failure: 'proceed' }] },
        c: { depends_on: ['b'] },
        x: { depends_on: ['a'] },
        y: { depends_on: ['x', 'b'] },
        z: { depends_on: ['y', 'c', 'b', 'a', 'x'] },
      }),
      { note: (name) => (name === 'y' ? 'running' : '') },
    )
    expect(drawn).toBe(
      [
        '╭ a',
        '├─╭ b (or proceed)',
        '│ ╰ c',
        '├ x',
        '├ y  running  also after b',
        '╰ z  also after c, b, a and 1 more',
      ].join('\n'),
    )
  })

  it('needs no box characters', () => {
    expect(drawGraph(TEAM, { ascii: true })).toMatch(/^[\x20-\x7e\n]*$/)
  })

  it('has one line for each agent, none indented deeply and none too long, whatever the graph', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0 }), fc.integer({ min: 1, max: 500 }), (seed, size) => {
        const plan = definePlan(randomPlan(randomOf(seed), size))
        const lines = drawGraph(graphOf(plan), { width: 80 }).split('\n')
        expect(lines).toHaveLength(size)
        for (const line of lines) {
          expect(line.length).toBeLessThanOrEqual(80)
          expect(line.search(/a\d/)).toBeLessThanOrEqual(2 * Math.log2(size) + 4)
        }
      }),
      { numRuns: 30 },
    )
  })

  it('draws a chain of 500 straight down', () => {
    const chain = Object.fromEntries(
      Array.from({ length: 500 }, (_, index) => [
        `n${index}`,
        index === 0 ? {} : { depends_on: [`n${index - 1}`] },
      ]),
    )
    const lines = drawGraph(graph(chain)).split('\n')
    expect([lines[0], lines[1], lines[499]]).toEqual(['╭ n0', '├ n1', '╰ n499'])
  })

  it('strips control characters from notes', () => {
    const drawn = drawGraph(graph({ a: {} }), { note: () => 'x\x1b[2J\r\n\u202Ey' })
    expect(drawn).toBe('─ a  x [2J   y')
  })

  it('lists the steps that run in parallel', () => {
    expect(drawSteps(TEAM)).toBe(
      ['1. collector, schema', '2. notes, charts, analyst', '3. legend, writer', '4. editor'].join('\n'),
    )
    expect(drawSteps(TEAM, { width: 18 }).split('\n').slice(0, 3)).toEqual([
      '1. collector,',
      '   schema',
      '2. notes, charts,',
    ])
  })
})

describe('the flowchart', () => {
  it('has every agent and every edge, with its policy (C22)', () => {
    expect(
      mermaidOf(
        graph({
          a: {},
          b: { depends_on: ['a'] },
          c: {
            depends_on: [
              { agent: 'a', on_failure: 'skip' },
              { agent: 'b', on_failure: 'proceed' },
            ],
          },
        }),
      ),
    ).toBe(
      `flowchart TD
  n0["a"]
  n1["b"]
  n2["c"]
  n0 --> n1
  n0 -- skip --> n2
  n1 -. proceed .-> n2
`,
    )
  })

  it('colours states', () => {
    const drawn = mermaidOf(graph({ a: {} }), () => 'failed')
    expect(drawn).toContain('n0["a: failed"]:::failed')
    expect(drawn).toContain('classDef failed ')
  })

  it('never reads a name as syntax', () => {
    const hostile = [
      'end',
      'a"]; click n0 "javascript:alert(1)"',
      '`x`\n%%{init}%%',
      '<script>',
      '#quot;',
      '🙂',
    ]
    const plan = definePlan({ agents: { a: {} } })
    const odd = graphOf({ ...plan, agents: hostile.map((name) => ({ ...plan.agents[0]!, name })) })
    const lines = mermaidOf(odd).trimEnd().split('\n')
    expect(lines).toHaveLength(1 + hostile.length)
    for (const line of lines.slice(1))
      expect(line).toMatch(/^ {2}n\d+\["(?:[\p{L}\p{N} _.,:()/-]|#\d+;)*"\]$/u)
  })

  it('notes when a renderer needs a higher limit of edges', () => {
    const many = Object.fromEntries(
      Array.from({ length: 60 }, (_, index) => [
        `n${index}`,
        { depends_on: Array.from({ length: Math.min(index, 20) }, (_, at) => `n${index - at - 1}`) },
      ]),
    )
    expect(mermaidOf(graph(many))).toMatch(/^%% \d+ edges: raise maxEdges/)
  })
})
