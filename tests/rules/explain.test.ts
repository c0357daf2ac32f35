import { expect, it } from 'vitest'
import { parseConfig } from '../../src/config/config.ts'
import { compileRules } from '../../src/rules/compile.ts'
import { explain } from '../../src/rules/decide.ts'

const yaml = `
agents:
  Master: {}
  Worker:
    parent: Master
    send: [Master, Helper]
    permissions: { urgent: ask }
  Helper:
rules:
  preset: tree
  allow:
    - { from: Worker, to: Helper, reason: they pair up }
  forbid:
    - from: Helper
      to: "*"
permissions:
  reset_session: ask
`

function rules() {
  const loaded = parseConfig(yaml, { env: {} })
  if (!loaded.ok) throw new Error(loaded.error[0]?.message)
  return compileRules(loaded.value.config)
}

it('lists the rules up to the deciding one, with their lines in the file', () => {
  expect(explain(rules(), 'worker', 'helper')).toEqual({
    decision: { verdict: 'allow', rule: 'rules.allow[0]', line: 12, reason: 'they pair up' },
    steps: [
      { rule: 'rules.forbid[0]', line: 14, reason: 'names other agents' },
      { rule: 'agents.Worker.send', line: 6, reason: 'lists Helper' },
      { rule: 'rules.allow[0]', line: 12, verdict: 'allow', reason: 'they pair up' },
    ],
  })
})

it('names the line of a preset, a permission and a forbidden pair', () => {
  expect(explain(rules(), 'Master', 'Helper').decision).toMatchObject({ rule: 'rules.preset', line: 10 })
  expect(explain(rules(), 'Helper', 'Master').decision).toMatchObject({ rule: 'rules.forbid[0]', line: 14 })
  expect(explain(rules(), 'Worker', 'Master', 'reset_session').decision).toMatchObject({
    verdict: 'ask',
    rule: 'permissions.reset_session',
    line: 17,
  })
})

it('explains an action by its own steps, including permissions that are not set', () => {
  expect(
    explain(rules(), 'Worker', 'Master', 'terminate_agent').steps.map((step) => [step.rule, step.verdict]),
  ).toEqual([
    ['agents.Worker.permissions.terminate_agent', undefined],
    ['permissions.terminate_agent', undefined],
    ['built-in: terminate_agent', 'deny'],
  ])
})

it('requires both the send rule and the permission for an urgent message (C2)', () => {
  expect(explain(rules(), 'Worker', 'Master', 'urgent').decision).toMatchObject({
    verdict: 'ask',
    rule: 'agents.Worker.permissions.urgent',
    line: 7,
  })
  expect(explain(rules(), 'Helper', 'Master', 'urgent').decision.rule).toBe('rules.forbid[0]')
})
