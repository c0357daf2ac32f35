import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { manifestText, planFromManifests, readPlan } from '../../../src/runs/plan/read-plan.ts'
import type { PlanAgent } from '../../../src/runs/plan.ts'
import { randomOf } from '../core/random.ts'
import { randomPlan } from '../core/script.ts'
import { definePlan } from '../define-plan.ts'

const SEED = readFileSync(new URL('./fixtures/dependencies.json', import.meta.url), 'utf8')

const workspaces = [
  { name: 'data-collector', manifest: null },
  { name: 'schema-validator', manifest: '{}' },
  { name: 'analyst', manifest: SEED, definition: { command: './analyse.sh' } },
]

const manifestOf = (agent: PlanAgent) => JSON.parse(manifestText(agent))

describe('dependencies.json', () => {
  it('is read in its documented form, and written in the same form (S4.13)', () => {
    const found = planFromManifests(workspaces)
    if (!found.ok) throw new Error('not found')
    const plan = definePlan(found.value)
    expect(plan.agents.find(({ name }) => name === 'analyst')!).toMatchObject({
      runner: { kind: 'command', command: './analyse.sh' },
      dependsOn: [
        {
          agent: 'data-collector',
          outputs: ['outbox/data.json', 'outbox/sources.md'],
          copyTo: 'inbox/source_data',
          onFailure: 'fail',
        },
        { agent: 'schema-validator', outputs: [] },
      ],
    })
    expect(JSON.parse(manifestText(plan.agents[2]!))).toEqual(JSON.parse(SEED))
  })

  it('restores any plan with its edges, outputs, targets and policies', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0 }), fc.integer({ min: 1, max: 40 }), (seed, size) => {
        const plan = definePlan(randomPlan(randomOf(seed), size))
        const found = planFromManifests(
          plan.agents.map((agent) => ({ name: agent.name, manifest: manifestText(agent) })),
        )
        if (!found.ok) throw new Error('not found')
        const back = definePlan(found.value)
        expect(back.agents.map(({ name, dependsOn }) => [name, dependsOn])).toEqual(
          plan.agents.map(({ name, dependsOn }) => [name, dependsOn]),
        )
      }),
      { numRuns: 50 },
    )
  })

  it('leaves out the default policy, as the documented form does', () => {
    const plan = definePlan({
      agents: { a: {}, b: { depends_on: ['a'] }, c: { depends_on: [{ agent: 'a', on_failure: 'proceed' }] } },
    })
    expect(manifestOf(plan.agents[1]!).depends_on[0]).not.toHaveProperty('on_failure')
    expect(manifestOf(plan.agents[2]!).depends_on[0]).toHaveProperty('on_failure', 'proceed')
  })

  it('keeps the policy of a dependency without outputs', () => {
    const depends_on = [
      { agent: 'a', outputs: [], on_failure: 'skip' as const },
      { agent: 'b', outputs: [] },
    ]
    const plan = definePlan({ agents: { a: {}, b: {}, c: { depends_on } } })
    expect(manifestOf(plan.agents[2]!)).toEqual({
      depends_on: [{ agent: 'a', outputs: [], on_failure: 'skip' }],
      wait_for: ['a', 'b'],
    })
    const found = planFromManifests(
      plan.agents.map((agent) => ({ name: agent.name, manifest: manifestText(agent) })),
    )
    expect(found.ok && definePlan(found.value).agents[2]!.dependsOn).toEqual(plan.agents[2]!.dependsOn)
  })

  it('ignores unknown keys, and accepts a BOM and CRLF', () => {
    const text = `\uFEFF${SEED.replace('{', '{ "note": "mine",').replaceAll('\n', '\r\n')}`
    const [own, changed] = [SEED, text].map((manifest) => planFromManifests([{ name: 'analyst', manifest }]))
    expect(changed).toEqual(own)
    expect(own).toMatchObject({
      ok: true,
      value: {
        agents: { analyst: { depends_on: [{ agent: 'data-collector' }, { agent: 'schema-validator' }] } },
      },
    })
  })

  it.each([
    ['{', 'is not JSON'],
    ['[]', 'the whole: Invalid input: expected object, received array'],
    [
      '{"depends_on":[{"outputs":[]}]}',
      'depends_on.0.agent: Invalid input: expected string, received undefined',
    ],
    [`"${'x'.repeat(1024 * 1024)}"`, 'is too large'],
  ])('that is invalid is reported with its path: %.40s', (manifest, message) => {
    expect(planFromManifests([{ name: 'a', manifest }])).toMatchObject({
      ok: false,
      error: [{ path: 'a/inbox/dependencies.json', message }],
    })
  })

  it('is checked like any plan: unknown agents, cycles and targets outside the inbox are refused', () => {
    const found = planFromManifests([
      { name: 'a', manifest: '{"wait_for":["b","x"]}' },
      { name: 'b', manifest: '{"depends_on":[{"agent":"a","copy_to":"../../etc"}]}' },
    ])
    const read = readPlan(JSON.stringify(found.ok && found.value))
    expect(!read.ok && read.error.map(({ message }) => message)).toEqual([
      'a waits for itself: a → b → a',
      'There is no agent "x"',
      '../../etc must not contain ".."',
    ])
  })
})
