import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileRules } from '../../src/rules/compile.ts'
import { decideAction, decideSend, explain } from '../../src/rules/decide.ts'
import { ACTIONS, type Action, type Policy, PRESETS, type Rule, VERDICTS } from '../../src/rules/rule.ts'

const NAMES = ['Ada', 'Bob', 'Cyd', 'Dee', 'Eve']
const name = fc.constantFrom(...NAMES)
const party = fc.constantFrom(...NAMES, 'operator', 'Nobody')
const who = fc.oneof(fc.constant(['*']), fc.uniqueArray(name, { minLength: 1, maxLength: 3 }))
const rule: fc.Arbitrary<Rule> = fc.record({ from: who, to: who })
const list = fc.array(rule, { maxLength: 4 })
const action = fc.constantFrom(...(Object.keys(ACTIONS) as Action[]))
const permissions = fc.dictionary(action, fc.constantFrom(...VERDICTS), { maxKeys: 4 })

const policy: fc.Arbitrary<Policy> = fc.record({
  agents: fc.tuple(
    ...NAMES.map((own, index) =>
      fc.record(
        {
          name: fc.constant(own),
          permissions,
          send: who,
          receive: who,
          // An earlier agent, so that there are no cycles.
          ...(index > 0 && { parent: fc.constantFrom(...NAMES.slice(0, index)) }),
        },
        { requiredKeys: ['name', 'permissions'] },
      ),
    ),
  ),
  rules: fc.record({
    preset: fc.constantFrom(...PRESETS),
    hub: name,
    allow: list,
    forbid: list,
    ask: list,
  }),
  permissions,
  lines: fc.constant({}),
})

function withRules(base: Policy, change: Partial<Policy['rules']>): Policy {
  return { ...base, rules: { ...base.rules, ...change } }
}

const STRICTNESS = { allow: 0, ask: 1, deny: 2 }
const inSomeCase = (text: string) =>
  fc
    .array(fc.boolean(), { minLength: text.length, maxLength: text.length })
    .map((upper) =>
      [...text].map((letter, index) => (upper[index] ? letter.toUpperCase() : letter.toLowerCase())).join(''),
    )

describe('for every policy (C24)', () => {
  it('forbid beats everything else', () => {
    fc.assert(
      fc.property(policy, name, name, (base, from, to) => {
        const rules = compileRules(
          withRules(base, { forbid: [...base.rules.forbid, { from: [from], to: [to] }] }),
        )
        expect(decideSend(rules, from, to).verdict).toBe('deny')
      }),
    )
  })

  it('adding a forbid, or narrowing an agent, never allows more', () => {
    const stricter = fc.oneof(
      rule.map((extra) => (base: Policy) => withRules(base, { forbid: [...base.rules.forbid, extra] })),
      fc.tuple(name, who).map(([narrowed, send]) => (base: Policy) => ({
        ...base,
        agents: base.agents.map((agent) =>
          agent.name === narrowed && !agent.send ? { ...agent, send } : agent,
        ),
      })),
    )
    fc.assert(
      fc.property(policy, stricter, party, party, (base, change, from, to) => {
        const before = decideSend(compileRules(base), from, to).verdict
        const after = decideSend(compileRules(change(base)), from, to).verdict
        expect(STRICTNESS[after]).toBeGreaterThanOrEqual(STRICTNESS[before])
      }),
    )
  })

  it('adding an ask never changes a denial by a forbid, by narrowing or by the self rule', () => {
    fc.assert(
      fc.property(policy, rule, party, party, (base, extra, from, to) => {
        const before = decideSend(compileRules(base), from, to)
        fc.pre(before.verdict === 'deny' && before.rule !== 'rules.preset')
        const after = decideSend(compileRules(withRules(base, { ask: [...base.rules.ask, extra] })), from, to)
        expect(after).toEqual(before)
      }),
    )
  })

  it('adding an allow never denies or asks more', () => {
    fc.assert(
      fc.property(policy, rule, party, party, (base, extra, from, to) => {
        const before = decideSend(compileRules(base), from, to).verdict
        const after = decideSend(
          compileRules(withRules(base, { allow: [...base.rules.allow, extra] })),
          from,
          to,
        )
        expect(STRICTNESS[after.verdict]).toBeLessThanOrEqual(STRICTNESS[before])
      }),
    )
  })

  it('the case of a name never changes a verdict (S0.10)', () => {
    const pair = fc.tuple(party, party).chain(([from, to]) =>
      fc.record({
        from: fc.constant(from),
        to: fc.constant(to),
        from2: inSomeCase(from),
        to2: inSomeCase(to),
      }),
    )
    fc.assert(
      fc.property(policy, pair, action, (base, { from, to, from2, to2 }, act) => {
        const rules = compileRules(base)
        expect(decideSend(rules, from2, to2).verdict).toBe(decideSend(compileRules(base), from, to).verdict)
        expect(decideAction(rules, from2, act, to2).verdict).toBe(decideAction(rules, from, act, to).verdict)
      }),
    )
  })

  it('the explanation ends with the decision, and the memo changes nothing', () => {
    fc.assert(
      fc.property(policy, party, party, action, (base, from, to, act) => {
        const rules = compileRules(base)
        const first = decideSend(rules, from, to)
        expect(decideSend(rules, from, to)).toEqual(first)
        const told = explain(rules, from, to)
        expect(told.decision).toEqual(first)
        expect(told.steps.at(-1)).toEqual(first)
        expect(told.steps.slice(0, -1).every((step) => step.verdict === undefined)).toBe(true)
        if (act !== 'urgent' && act !== 'broadcast') {
          expect(explain(rules, from, to, act).decision).toEqual(decideAction(rules, from, act, to))
        }
      }),
    )
  })
})
