import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { EDGE_POLICIES, type EdgePolicy } from '../../src/runs/plan.ts'
import type { NodeState } from '../../src/runs/run.ts'
import { MADE, openRunTeam, statesOf } from './harness.ts'

interface Wanted {
  succeeds: boolean
  skips: boolean
  /** Earlier ones, by their numbers. */
  needs: { on: number; policy: EdgePolicy }[]
}

const graphs = fc
  .array(
    fc.record({
      succeeds: fc.boolean(),
      skips: fc.boolean(),
      needs: fc.array(fc.record({ on: fc.nat(), policy: fc.constantFrom(...EDGE_POLICIES) }), {
        maxLength: 3,
      }),
    }),
    { minLength: 1, maxLength: 8 },
  )
  .map((nodes) =>
    nodes.map(({ needs, ...node }, index): Wanted => {
      const on = new Map(index === 0 ? [] : needs.map((need) => [need.on % index, need.policy]))
      return { ...node, needs: [...on].map(([other, policy]) => ({ on: other, policy })) }
    }),
  )

/** The expected result, in the simplest form. */
function expected(nodes: readonly Wanted[]): NodeState[] {
  const states: NodeState[] = []
  for (const { succeeds, skips, needs } of nodes) {
    const broken = needs.filter(({ on }) => states[on] !== 'completed').map(({ policy }) => policy)
    if (broken.includes('fail')) states.push('failed')
    else if (broken.includes('skip')) states.push('skipped')
    else states.push(succeeds ? 'completed' : skips ? 'skipped' : 'failed')
  }
  return states
}

function planOf(nodes: readonly Wanted[]): string {
  const agents = nodes.map(({ succeeds, skips, needs }, index) => {
    const command = `echo n${index} >> ../../../ran.log; ${succeeds ? `${MADE} x > outbox/x` : 'exit 1'}`
    const edges = needs.map(({ on, policy }) => `{ agent: n${on}, on_failure: ${policy} }`)
    return `  n${index}: { command: "${command}", retries: 0, on_error: ${skips ? 'skip' : 'retry'}, depends_on: [${edges.join(', ')}] }`
  })
  return `concurrency: 3\nagents:\n${agents.join('\n')}\n`
}

it('ends as its policies require, whatever fails, and runs nothing twice (C22)', {
  timeout: 60_000,
}, async () => {
  const team = await openRunTeam()
  try {
    await fc.assert(
      fc.asyncProperty(graphs, async (nodes) => {
        team.write('ran.log', '')
        const id = await team.start(planOf(nodes))
        const seen = await team.ended(id)
        expect(Object.values(statesOf(seen))).toEqual(expected(nodes))
        const ran = readFileSync(join(team.plans, 'ran.log'), 'utf8')
          .trim()
          .split('\n')
          .filter((line) => line !== '')
        expect(new Set(ran).size).toBe(ran.length)
      }),
      { numRuns: 8 },
    )
  } finally {
    await team.close()
  }
})
