import { describe, expect, it } from 'vitest'
import {
  EVENT_TO,
  isLegal,
  NEXT,
  next,
  SEED_OF,
  SEED_STATES,
  STATE_OF_SEED,
} from '../../../src/tasks/core/transitions.ts'
import { END_STATES, isEnd, TASK_EVENTS, TASK_STATES } from '../../../src/tasks/task.ts'

describe('the state machine of a task', () => {
  it.each(END_STATES)('has no way out of %s (C6)', (state) => {
    for (const event of TASK_EVENTS) expect(next(state, event)).toBeUndefined()
    for (const other of TASK_STATES) {
      if (other !== state) expect(isLegal({ state, attempt: 1 }, { state: other, attempt: 2 })).toBe(false)
    }
  })

  it.each(TASK_STATES.filter((state) => !isEnd(state)))('ends in every way from %s (S2.1)', (state) => {
    expect(END_STATES.map((end) => next(state, EVENT_TO[end]))).toEqual([...END_STATES])
  })

  it('reaches every state from pending', () => {
    const reached = new Set(['pending'])
    for (const state of reached) for (const to of Object.values(NEXT[state as 'pending'])) reached.add(to)
    expect([...reached].sort()).toEqual([...TASK_STATES].sort())
  })

  it('calls each edge by the state it leads to', () => {
    for (const edges of Object.values(NEXT)) {
      for (const [event, to] of Object.entries(edges)) expect(EVENT_TO[to]).toBe(event)
    }
  })

  it('goes back to pending only as a new attempt (C6)', () => {
    expect(isLegal({ state: 'executing', attempt: 1 }, { state: 'pending', attempt: 1 })).toBe(false)
    expect(isLegal({ state: 'executing', attempt: 1 }, { state: 'pending', attempt: 2 })).toBe(true)
    expect(isLegal({ state: 'executing', attempt: 1 }, { state: 'waiting_child', attempt: 2 })).toBe(false)
  })
})

describe('the words of the seed', () => {
  it('come back as they went in (S2.8)', () => {
    for (const word of SEED_STATES) expect(SEED_OF[STATE_OF_SEED[word]]).toBe(word)
  })

  it('never call a task completed that is not (S2.8)', () => {
    expect(TASK_STATES.filter((state) => SEED_OF[state] === 'completed')).toEqual(['completed'])
  })
})
