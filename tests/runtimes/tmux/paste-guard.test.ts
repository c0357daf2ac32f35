import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SESSION_STATES } from '../../../src/base/agent.ts'
import { guardPaste, type PaneFacts, PERSON_QUIET_MS } from '../../../src/runtimes/tmux/paste-guard.ts'

const FREE: PaneFacts = {
  state: 'idle',
  inputBox: 'empty',
  isDead: false,
  isInMode: false,
  isSynchronized: false,
  isInputOff: false,
  isBracketed: true,
  personQuietMs: undefined,
}

const REFUSED: [string, Partial<PaneFacts>, RegExp][] = [
  ['a dead pane', { isDead: true }, /ended/],
  ['an agent that starts', { state: 'initializing' }, /starting/],
  ['a busy agent', { state: 'busy' }, /busy/],
  ['an open dialog', { state: 'waiting_input' }, /waiting for a person/],
  ['a paused agent', { state: 'paused' }, /paused/],
  ['an agent in trouble', { state: 'error' }, /has an error/],
  ['an agent that exited', { state: 'exited' }, /exited/],
  ['an agent of which nothing is known', { state: 'unknown' }, /state is unknown/],
  ['copy mode', { isInMode: true }, /copy mode/],
  ['synchronized panes', { isSynchronized: true }, /synchronized/],
  ['input that is off', { isInputOff: true }, /is switched off/],
  ['a program that takes no paste', { isBracketed: false }, /bracketed paste/],
  ['a draft', { inputBox: 'draft' }, /draft/],
  ['an unreadable input box', { inputBox: 'unknown' }, /recognised/],
  ['a person who types', { personQuietMs: 500 }, /typing/],
]

const Facts: fc.Arbitrary<PaneFacts> = fc.record({
  state: fc.constantFrom(...SESSION_STATES),
  inputBox: fc.constantFrom('empty', 'draft', 'unknown'),
  isDead: fc.boolean(),
  isInMode: fc.boolean(),
  isSynchronized: fc.boolean(),
  isInputOff: fc.boolean(),
  isBracketed: fc.boolean(),
  personQuietMs: fc.option(fc.nat(5000), { nil: undefined }),
})

describe('the guard of pane writes', () => {
  it('allows a paste when every fact allows it', () => {
    expect(guardPaste(FREE)).toEqual({ write: true })
    expect(guardPaste({ ...FREE, personQuietMs: PERSON_QUIET_MS })).toEqual({ write: true })
  })

  it.each(REFUSED)('waits for %s, and says so', (_, facts, reason) => {
    const decision = guardPaste({ ...FREE, ...facts })
    expect(decision).toMatchObject({ write: false, reason: expect.stringMatching(reason) })
  })

  it('fails closed: a single unfavourable fact blocks the paste', () => {
    fc.assert(
      fc.property(Facts, (facts) => {
        const isRight =
          facts.state === 'idle' &&
          facts.inputBox === 'empty' &&
          !(facts.isDead || facts.isInMode || facts.isSynchronized || facts.isInputOff) &&
          facts.isBracketed &&
          (facts.personQuietMs ?? Number.POSITIVE_INFINITY) >= PERSON_QUIET_MS
        expect(guardPaste(facts).write).toBe(isRight)
      }),
    )
  })

  it('gives up at once only if the obstacle cannot end', () => {
    fc.assert(
      fc.property(Facts, (facts) => {
        const decision = guardPaste(facts)
        if (!decision.write) expect(decision.isFinal ?? false).toBe(facts.isDead)
      }),
    )
  })

  it('knows how long a person has to be quiet', () => {
    expect(guardPaste({ ...FREE, personQuietMs: 1500 })).toMatchObject({ againMs: 500 })
  })
})
