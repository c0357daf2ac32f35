import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { END_STATES, TASK_STATES } from '../../../src/tasks/task.ts'
import { play } from './play.ts'

const probability = fc.integer({ min: 0, max: 4 }).map((tenth) => tenth / 10)
const temper = fc.record({
  silence: probability,
  doubling: probability,
  crash: probability,
  garbage: probability,
})

/** fast-check prints its own seed and the smallest example: `play(seed, temper)` repeats it. */
describe('delegation under a simulated clock', () => {
  it('ends every task, leaves no orphan, does nothing twice, wakes each parent once and approves nothing by itself (S2.1, C7, C9)', () => {
    fc.assert(
      fc.property(fc.integer(), temper, (seed, temper) => void play(seed, temper)),
      { numRuns: 200 },
    )
  }, 120_000)

  it('reaches every state, every end and every kind of effect, so the property above is meaningful', () => {
    const states = new Set<string>()
    const ends = new Set<string>()
    const kinds = new Set<string>()
    for (let seed = 0; seed < 40; seed++) {
      const played = play(seed, { silence: 0.2, doubling: 0.2, crash: 0.2, garbage: 0.2 })
      for (const state of played.states) states.add(state)
      for (const { state } of played.tasks) ends.add(state)
      for (const effect of played.effects) kinds.add(effect.type === 'send' ? effect.kind : effect.type)
    }
    expect([...states].sort()).toEqual([...TASK_STATES].sort())
    expect([...ends].sort()).toEqual([...END_STATES].sort())
    const sent =
      'delegate follow_up reminder answer query extension report needs_help review failed cancelled children_ended'
    const done = 'ask_person withdraw record_outcome dispatch note'
    const outside = 'start_agent interrupt_agent run_checks run_judge'
    expect([...kinds].sort()).toEqual(`${sent} ${done} ${outside}`.split(' ').sort())
  }, 60_000)
})
