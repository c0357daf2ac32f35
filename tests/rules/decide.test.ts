import { describe, expect, it } from 'vitest'
import { type ConfigInput, defineConfig } from '../../src/config/config.ts'
import { compileRules } from '../../src/rules/compile.ts'
import { decideAction, decideSend, readableLogs, strictest } from '../../src/rules/decide.ts'
import { ACTIONS, type Action, type Preset, type Verdict } from '../../src/rules/rule.ts'

const team: ConfigInput['agents'] = {
  Master: {},
  Left: { parent: 'Master' },
  Right: { parent: 'Master' },
  Leaf: { parent: 'Left' },
}

function rulesOf(input: Omit<ConfigInput, 'agents'> & { agents?: ConfigInput['agents'] } = {}) {
  return compileRules(defineConfig({ agents: team, ...input }, { env: {} }))
}

describe('presets (C24)', () => {
  const table: [Preset, from: string, to: string, Verdict][] = [
    ['mesh', 'Left', 'Right', 'allow'],
    ['mesh', 'Leaf', 'Master', 'allow'],
    ['tree', 'Master', 'Left', 'allow'],
    ['tree', 'Left', 'Master', 'allow'],
    ['tree', 'Left', 'Right', 'deny'],
    ['tree', 'Leaf', 'Master', 'deny'],
    ['tree', 'Master', 'Leaf', 'deny'],
    ['hub', 'Right', 'Leaf', 'deny'],
    ['hub', 'Right', 'Left', 'allow'],
    ['hub', 'Left', 'Right', 'allow'],
    ['isolated', 'Master', 'Left', 'deny'],
    ['isolated', 'Left', 'Master', 'deny'],
  ]
  it.each(table)('%s: %s to %s is %s', (preset, from, to, verdict) => {
    const rules = rulesOf({ rules: { preset, ...(preset === 'hub' && { hub: 'Left' }) } })
    expect(decideSend(rules, from, to)).toMatchObject({ verdict, rule: 'rules.preset' })
  })

  it('is mesh without a rules section', () => {
    expect(decideSend(rulesOf(), 'Leaf', 'Right').verdict).toBe('allow')
  })

  it('tells the refused agent whom it may write to (S1.12)', () => {
    expect(decideSend(rulesOf({ rules: { preset: 'tree' } }), 'Leaf', 'Right').reason).toBe(
      'in this tree Leaf may write only to its parent, Left, and its own children',
    )
    expect(decideSend(rulesOf({ rules: { preset: 'hub', hub: 'Master' } }), 'Left', 'Right').reason).toBe(
      'messages between agents go through Master; write to Master instead',
    )
  })
})

describe('lists (C24)', () => {
  const both = { from: 'Left', to: 'Right' }

  it('lets forbid beat ask, and ask beat allow', () => {
    const allow = [both]
    const ask = [{ ...both, reason: 'expensive' }]
    const forbid = [{ ...both, reason: 'they quarrel' }]
    expect(decideSend(rulesOf({ rules: { preset: 'isolated', allow } }), 'Left', 'Right').verdict).toBe(
      'allow',
    )
    expect(decideSend(rulesOf({ rules: { preset: 'mesh', allow, ask } }), 'Left', 'Right')).toMatchObject({
      verdict: 'ask',
      rule: 'rules.ask[0]',
      reason: 'expensive',
    })
    expect(decideSend(rulesOf({ rules: { allow, ask, forbid } }), 'Left', 'Right')).toEqual({
      verdict: 'deny',
      rule: 'rules.forbid[0]',
      reason: 'they quarrel',
    })
  })

  it('applies in one direction only', () => {
    const rules = rulesOf({ rules: { forbid: [both] } })
    expect(decideSend(rules, 'Right', 'Left').verdict).toBe('allow')
  })

  it('accepts lists of names and * on both sides', () => {
    const rules = rulesOf({ rules: { forbid: [{ from: ['Leaf', 'Right'], to: '*' }] } })
    expect(decideSend(rules, 'Leaf', 'Master').verdict).toBe('deny')
    expect(decideSend(rules, 'Right', 'Leaf').verdict).toBe('deny')
    expect(decideSend(rules, 'Left', 'Leaf').verdict).toBe('allow')
  })

  it('names the rule that decided, not the first in the list', () => {
    const rules = rulesOf({ rules: { forbid: [{ from: 'Leaf', to: '*' }, both] } })
    expect(decideSend(rules, 'Left', 'Right').rule).toBe('rules.forbid[1]')
  })
})

describe('send and receive (C24)', () => {
  it('needs both sides: sending is narrowed by the sender, receiving by the recipient', () => {
    const agents = { ...team, Left: { send: ['Master'] }, Right: { receive: 'Master' } }
    const rules = rulesOf({ agents })
    expect(decideSend(rules, 'Left', 'Master').verdict).toBe('allow')
    expect(decideSend(rules, 'Left', 'Leaf')).toMatchObject({ verdict: 'deny', rule: 'agents.Left.send' })
    expect(decideSend(rules, 'Leaf', 'Right')).toMatchObject({
      verdict: 'deny',
      rule: 'agents.Right.receive',
    })
    expect(decideSend(rules, 'Master', 'Right').verdict).toBe('allow')
  })

  it('never widens what the rules say', () => {
    const agents = { ...team, Left: { send: '*' }, Right: { receive: '*' } }
    expect(decideSend(rulesOf({ agents, rules: { preset: 'isolated' } }), 'Left', 'Right').verdict).toBe(
      'deny',
    )
  })

  it('is not overruled by allow or ask', () => {
    const entry = [{ from: 'Left', to: 'Right' }]
    const agents = { ...team, Left: { send: [] } }
    expect(
      decideSend(rulesOf({ agents, rules: { allow: entry, ask: entry } }), 'Left', 'Right').verdict,
    ).toBe('deny')
  })
})

describe('the sender', () => {
  const strict = rulesOf({ rules: { preset: 'isolated', forbid: [{ from: '*', to: '*' }] } })

  it('may be the operator, who writes to and hears from every agent', () => {
    expect(decideSend(strict, 'operator', 'Leaf').verdict).toBe('allow')
    expect(decideSend(strict, 'Leaf', 'operator').verdict).toBe('allow')
  })

  it('must be known, even to write to the operator', () => {
    const rules = rulesOf()
    expect(decideSend(rules, 'Ghost', 'Master')).toMatchObject({
      verdict: 'deny',
      rule: 'built-in: unknown agent',
    })
    expect(decideSend(rules, 'Ghost', 'operator').verdict).toBe('deny')
    expect(decideSend(rules, 'operator', 'Ghost').verdict).toBe('deny')
    expect(decideSend(rules, 'Leaf', '*').verdict).toBe('deny')
    expect(decideSend(rules, 'constructor', '__proto__').verdict).toBe('deny')
  })

  it('learns the known agents from an unknown name (S0.15)', () => {
    expect(decideSend(rulesOf(), 'Leaf', 'Boss').reason).toBe(
      'there is no agent "Boss"; the agents are Master, Left, Right, Leaf',
    )
  })

  it('is not matched by look-alike letters', () => {
    const rules = rulesOf({ agents: { Kim: {}, Other: {} } })
    expect(decideSend(rules, '\u212Aim', 'Other').verdict).toBe('deny')
    expect(decideSend(rules, 'kIM', 'Other').verdict).toBe('allow')
  })

  it('cannot write to itself, whatever the rules say', () => {
    const rules = rulesOf({ rules: { allow: [{ from: '*', to: '*' }] } })
    expect(decideSend(rules, 'Leaf', 'leaf')).toMatchObject({ verdict: 'deny', rule: 'built-in: self' })
  })

  it('is memoized for known pairs only, so that floods of unknown names cost no memory', () => {
    const rules = rulesOf()
    for (let i = 0; i < 1000; i++) {
      decideSend(rules, `Ghost${i}`, 'Master')
      decideSend(rules, 'Leaf', `LEAF${i}`)
      decideSend(rules, i % 2 === 0 ? 'LEAF' : 'leaf', 'MASTER')
    }
    expect(rules.memo.size).toBe(1)
    expect(decideSend(rules, 'Leaf', 'Master')).toBe(decideSend(rules, 'lEAF', 'mASTER'))
  })
})

describe('permissions (S1.19)', () => {
  const ALLOWED: readonly Action[] = ['query_state', 'broadcast']
  it.each(Object.keys(ACTIONS) as Action[])('%s has its default (C2, C14, C15)', (action) => {
    const verdict = ALLOWED.includes(action) ? 'allow' : 'deny'
    expect(decideAction(rulesOf(), 'Left', action, 'Right')).toMatchObject({
      verdict,
      rule: `built-in: ${action}`,
    })
  })

  it('uses the permission of the agent first, then that of all agents', () => {
    const rules = rulesOf({
      agents: { ...team, Left: { permissions: { urgent: 'allow' } } },
      permissions: { urgent: 'ask', broadcast: 'deny' },
    })
    expect(decideAction(rules, 'Left', 'urgent')).toMatchObject({
      verdict: 'allow',
      rule: 'agents.Left.permissions.urgent',
    })
    expect(decideAction(rules, 'Right', 'urgent')).toMatchObject({
      verdict: 'ask',
      rule: 'permissions.urgent',
    })
    expect(decideAction(rules, 'Left', 'broadcast').verdict).toBe('deny')
  })

  it('allows everything to the operator and nothing to unknown agents', () => {
    const rules = rulesOf({ permissions: { reset_session: 'deny', broadcast: 'allow' } })
    expect(decideAction(rules, 'operator', 'reset_session', 'Leaf').verdict).toBe('allow')
    expect(decideAction(rules, 'Ghost', 'broadcast').verdict).toBe('deny')
  })

  it.each(['read_other_mailbox', 'update_other_status', 'read_log'] as const)(
    '%s needs no grant where the agent itself is meant (C14)',
    (action) => {
      const rules = rulesOf({ permissions: { [action]: 'deny' } })
      expect(decideAction(rules, 'Leaf', action, 'LEAF').verdict).toBe('allow')
      expect(decideAction(rules, 'Leaf', action, 'Right').verdict).toBe('deny')
    },
  )

  it('does not let an agent stop or reset itself without permission (C15)', () => {
    expect(decideAction(rulesOf(), 'Leaf', 'reset_session', 'Leaf').verdict).toBe('deny')
  })
})

describe('oversight (S1.14)', () => {
  it('lets an agent read the log of its descendants only, at any depth', () => {
    const rules = rulesOf()
    expect(readableLogs(rules, 'Master')).toEqual(['Master', 'Left', 'Right', 'Leaf'])
    expect(readableLogs(rules, 'left')).toEqual(['Left', 'Leaf'])
    expect(readableLogs(rules, 'Leaf')).toEqual(['Leaf'])
    expect(readableLogs(rules, 'Ghost')).toEqual([])
    expect(readableLogs(rules, 'operator')).toBe('all')
  })

  it('can be widened and removed', () => {
    expect(readableLogs(rulesOf({ permissions: { read_log: 'deny' } }), 'Master')).toEqual(['Master'])
    const agents = { ...team, Leaf: { permissions: { read_log: 'allow' as const } } }
    expect(readableLogs(rulesOf({ agents }), 'Leaf')).toBe('all')
  })
})

it('uses the strictest of several decisions, as for an urgent message (C2)', () => {
  const rules = rulesOf({
    permissions: { urgent: 'ask' },
    rules: { forbid: [{ from: 'Left', to: 'Right' }] },
  })
  const urgent = decideAction(rules, 'Left', 'urgent')
  expect(strictest(decideSend(rules, 'Left', 'Right'), urgent).rule).toBe('rules.forbid[0]')
  expect(strictest(decideSend(rules, 'Left', 'Master'), urgent).rule).toBe('permissions.urgent')
})

describe('the approvers of a rule that asks (C9)', () => {
  const people = { ada: {}, ben: {} }

  it('are part of the decision only if it asks', () => {
    const rules = rulesOf({
      people,
      rules: { ask: [{ from: 'Left', to: 'Right', approvers: ['ada', 'ben'], quorum: 2 }] },
      permissions: { spawn_agent: { verdict: 'ask', quorum: 2 } },
    })
    expect(decideSend(rules, 'Left', 'Right').approval).toEqual({ approvers: ['ada', 'ben'], quorum: 2 })
    expect(decideSend(rules, 'Right', 'Left').approval).toBeUndefined()
    expect(decideAction(rules, 'Left', 'spawn_agent').approval).toEqual({ quorum: 2 })
  })

  it.each([
    ['more approvals', { quorum: 1 }, { quorum: 2 }, 'permissions.urgent'],
    ['more approvals', { quorum: 2 }, { approvers: ['ada'], quorum: 1 }, 'rules.ask[0]'],
    ['named approvers', { quorum: 1 }, { approvers: ['ada'] }, 'permissions.urgent'],
    ['the first of two alike', { approvers: ['ben'] }, { approvers: ['ada'] }, 'rules.ask[0]'],
  ])('are those of the stricter rule of two: %s', (_, send, urgent, rule) => {
    const rules = rulesOf({
      people,
      rules: { ask: [{ from: 'Left', to: 'Right', ...send }] },
      permissions: { urgent: { verdict: 'ask', ...urgent } },
    })
    const asked = [decideSend(rules, 'Left', 'Right'), decideAction(rules, 'Left', 'urgent')] as const
    expect(strictest(...asked).rule).toBe(rule)
  })
})
