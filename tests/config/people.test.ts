import { describe, expect, it } from 'vitest'
import { mistakesIn, read } from './parse.ts'

const configOf = (yaml: string) => read(yaml).config

describe('people in orc.yaml', () => {
  it('are operators by default', () => {
    expect(
      configOf('agents: { A: {} }\npeople:\n  ada:\n  ben: { role: viewer }\n  mo: { role: moderator }')
        .people,
    ).toEqual([
      { name: 'ada', role: 'operator' },
      { name: 'ben', role: 'viewer' },
      { name: 'mo', role: 'moderator' },
    ])
  })

  it('cannot share a name with an agent, another person or the service (C3)', () => {
    expect(mistakesIn('agents: { Ada: {} }\npeople: { ada: {} }')).toEqual([
      'people.ada: "ada" has the same name as the agent Ada',
    ])
    expect(mistakesIn('agents: { A: {} }\npeople: { ben: {}, Ben: {} }')).toEqual([
      'people.Ben: "Ben" has the same name as the person ben',
    ])
    expect(mistakesIn('agents: { A: {} }\npeople: { operator: {} }')).toEqual([
      'people.operator: "operator" is reserved for the service or its people',
    ])
    expect(mistakesIn('agents: { A: {} }\npeople: { "a b": {} }')).toEqual([
      'people["a b"]: "a b" is not a valid name for a person',
    ])
    expect(mistakesIn('agents: { A: {} }\npeople: { ada: { role: boss } }')).toEqual([
      'people.ada.role: "role" must be one of: operator, viewer, moderator (got "boss")',
    ])
  })
})

describe('approvers and a quorum', () => {
  const people = 'people: { ada: {}, ben: {}, vera: { role: viewer } }'

  it('belong to a rule or a permission, for all agents or for one', () => {
    const { approvals, permissions, agents } = configOf(`
agents:
  A: { permissions: { urgent: { verdict: ask, approvers: [ADA] } } }
  B: {}
${people}
permissions: { spawn_agent: { verdict: ask, quorum: 2 }, broadcast: deny }
rules: { ask: [{ from: A, to: B }, { from: B, to: A, approvers: [ada, operator, ada], quorum: 2 }] }`)
    expect(approvals).toEqual({
      'rules.ask[1]': { approvers: ['ada', 'operator'], quorum: 2 },
      'permissions.spawn_agent': { quorum: 2 },
      'agents.A.permissions.urgent': { approvers: ['ada'], quorum: 1 },
    })
    expect(permissions).toEqual({ spawn_agent: 'ask', broadcast: 'deny' })
    expect(agents[0]!.permissions).toEqual({ urgent: 'ask' })
  })

  it.each([
    ['{ approvers: [zoe] }', 'approvers[0]: There is no person "zoe"'],
    ['{ approvers: [vera] }', 'approvers[0]: vera is a viewer and cannot approve'],
    ['{ approvers: [] }', 'approvers: "approvers" must not be an empty list'],
    ['{ approvers: [ada, ada], quorum: 2 }', 'quorum: The quorum is 2, but only one person can approve'],
    ['{ quorum: 4 }', 'quorum: The quorum is 4, but only 3 people can approve'],
    ['{ quorum: 0 }', 'quorum: "quorum" must be at least 1'],
  ])('that can never be met are refused: %s', (said, problem) => {
    const rule = said.replace('{', '{ from: A, to: B,')
    expect(mistakesIn(`agents: { A: {}, B: {} }\n${people}\nrules: { ask: [${rule}] }`)).toEqual([
      `rules.ask[0].${problem}`,
    ])
  })

  it('are refused where no person is asked', () => {
    expect(
      mistakesIn(`agents: { A: {}, B: {} }\n${people}\nrules: { allow: [{ from: A, to: B, quorum: 2 }] }`),
    ).toEqual(['rules.allow[0].quorum: Unknown key "quorum"'])
    expect(
      mistakesIn(`agents: { A: {} }\n${people}\npermissions: { urgent: { verdict: allow, quorum: 1 } }`),
    ).toHaveLength(1)
  })
})

describe('settings of questions to people', () => {
  it('accept an existing model and a duration', () => {
    const yaml = (tasks: string) =>
      `agents: { A: {} }\nmodels: { fast: { provider: anthropic, model: m } }\ntasks: ${tasks}`
    expect(configOf(yaml('{ answer_check: fast, user_input_timeout: 2h }')).tasks).toMatchObject({
      answerCheck: 'fast',
      userInputMs: 7200_000,
    })
    expect(configOf(yaml('{ answer_check: off, user_input_timeout: off }')).tasks).toMatchObject({
      answerCheck: undefined,
      userInputMs: null,
    })
    expect(mistakesIn(yaml('{ answer_check: slow }'))).toEqual([
      'tasks.answer_check: There is no model "slow"',
    ])
  })
})
