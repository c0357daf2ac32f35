import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Principal } from '../../src/base/agent.ts'
import { AppError } from '../../src/base/errors.ts'
import { findHumanRequest, hashOf } from '../../src/people/people.ts'
import { decide, openTestEngine, type TestEngine } from '../harness/engine.ts'

const HOUR = 3600_000
const APPROVERS = ['ada', 'ben', 'cleo']
const QUORUM = 2
const TEAM = {
  agents: { Master: {}, Worker: {} },
  people: { ada: {}, ben: {}, cleo: {}, dan: {}, vera: { role: 'viewer' as const } },
  rules: { ask: [{ from: 'Worker', to: 'Master', approvers: APPROVERS, quorum: QUORUM }] },
}

type Step =
  | { what: 'approve' | 'blind' | 'reject'; who: string }
  | { what: 'modify'; who: string; to: string }
  | { what: 'wait'; hours: number }
  | { what: 'crash' | 'tamper' | 'forge' }

const who = fc.constantFrom('ada', 'ben', 'cleo', 'dan', 'vera', 'operator', 'Worker', 'nobody')
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ what: fc.constantFrom('approve', 'blind'), who }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('reject'), who }) },
  {
    weight: 2,
    arbitrary: fc.record({ what: fc.constant('modify'), who, to: fc.constantFrom('one', 'two') }),
  },
  { weight: 2, arbitrary: fc.record({ what: fc.constant('wait'), hours: fc.constantFrom(1, 40, 80) }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constantFrom('crash', 'tamper', 'forge') }) },
)

/** The expected outcome of the request, modelled as simply as possible. */
function createOracle() {
  let isOpen = true
  let content = 'asked'
  let isChanged = false
  let changedBy = ''
  let isDamaged = false
  let hours = 0
  /** The approvers, by the content that they approved. */
  let approvals = new Map<string, Set<string>>()
  let carriedOut: string | undefined
  const end = () => {
    isOpen = false
  }
  const approve = (name: string) => {
    const given = approvals.get(content) ?? new Set()
    if (given.has(name)) return
    approvals.set(content, given.add(name))
    if (given.size < QUORUM) return
    carriedOut = content
    end()
  }
  return {
    carriedOut: () => carriedOut,
    take(one: Step) {
      if (!isOpen) return
      if (one.what === 'wait') {
        hours += one.hours
        if (hours >= 72) end()
      } else if (one.what === 'tamper') isDamaged = true
      else if (one.what === 'forge') {
        content = 'forged'
        isDamaged = false
      } else if ('who' in one && APPROVERS.includes(one.who)) {
        if (one.what === 'reject') end()
        else if (isDamaged) return
        // Without a hash, a person cannot change an action that somebody else has changed.
        else if (one.what === 'modify' && isChanged && changedBy !== one.who) return
        else if (one.what === 'modify' && one.to !== content) {
          content = one.to
          isChanged = true
          changedBy = one.who
          approvals = new Map()
          approve(one.who)
        } else if (one.what === 'approve' || (one.what === 'blind' && !isChanged)) approve(one.who)
      }
    },
  }
}

function principal(name: string): Principal {
  if (name === 'operator') return { kind: 'operator' }
  return name === 'Worker' ? { kind: 'agent', agent: name } : { kind: 'person', person: name }
}

async function take(engine: TestEngine, one: Step): Promise<TestEngine> {
  const run = (sql: string, params: string[] = []) => engine.store.write((tx) => tx.run(sql, params))
  switch (one.what) {
    case 'wait':
      await engine.clock.advance(one.hours * HOUR)
      return engine
    case 'crash':
      return await engine.reopen()
    case 'tamper':
      await run(`UPDATE human_requests SET action = REPLACE(action, '"content":"', '"content":"x')`)
      return engine
    case 'forge': {
      const action = JSON.stringify({
        type: 'send_message',
        fields: { to: 'Master', priority: 'normal', content: 'forged' },
      })
      const row = await findHumanRequest(engine.store, 1)
      await run('UPDATE human_requests SET action = ?, action_hash = ? WHERE id = 1', [
        action,
        hashOf({ ...row!, action }),
      ])
      return engine
    }
    default: {
      const row = await engine.store.get<{ action_hash: string }>(
        'SELECT action_hash FROM human_requests WHERE id = 1',
      )
      const verdict = {
        decision: one.what === 'blind' ? ('approve' as const) : one.what,
        ...(one.what === 'approve' ? { hash: row!.action_hash } : {}),
        ...(one.what === 'modify' ? { fields: { content: one.to } } : {}),
      }
      await decide(engine, principal(one.who), 'req_1', verdict).catch((error: unknown) => {
        if (!(error instanceof AppError)) throw error
      })
      return engine
    }
  }
}

describe('under any order of verdicts, timers and crashes (C9)', () => {
  it('a held command runs once with enough approvals of that exact command, or never', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const oracle = createOracle()
        let engine = await openTestEngine(TEAM)
        try {
          await engine.say('Worker', 'send_message', { to: 'Master', content: 'asked' })
          for (const one of steps) {
            engine = await take(engine, one)
            oracle.take(one)
          }
          const arrived = (await engine.mailOf('Master')).map(({ content }) => content)
          const expected = oracle.carriedOut()
          expect(arrived).toEqual(expected === undefined ? [] : [expected])
          await engine.clock.advance(100 * HOUR)
          // In the end the asker knows the outcome.
          const told = (await engine.mailOf('Worker')).filter(({ title }) => title.startsWith('req_1 '))
          expect(told).toHaveLength(1)
          expect(await engine.mailOf('Master')).toHaveLength(arrived.length)
        } finally {
          await engine.close()
        }
      }),
      { numRuns: 40 },
    )
  }, 120_000)
})
