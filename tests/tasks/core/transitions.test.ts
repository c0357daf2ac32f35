import { describe, expect, it } from 'vitest'
import { isLegal, next, TRANSITION_TO, TRANSITIONS } from '../../../src/tasks/core/task-changes.ts'
import { END_STATES, isEnd, TASK_STATES, TASK_TRANSITIONS } from '../../../src/tasks/task.ts'

describe('the state machine of a task', () => {
  it.each(END_STATES)('has no transition from %s (C6)', (state) => {
    for (const event of TASK_TRANSITIONS) expect(next(state, event)).toBeUndefined()
    for (const other of TASK_STATES) {
      if (other !== state) expect(isLegal({ state, attempt: 1 }, { state: other, attempt: 2 })).toBe(false)
    }
  })

  it.each(TASK_STATES.filter((state) => !isEnd(state)))('can end in every way from %s (S2.1)', (state) => {
    expect(END_STATES.map((end) => next(state, TRANSITION_TO[end]))).toEqual([...END_STATES])
  })

  it('reaches every state from pending', () => {
    const reached = new Set(['pending'])
    for (const state of reached)
      for (const to of Object.values(TRANSITIONS[state as 'pending'])) reached.add(to)
    expect([...reached].sort()).toEqual([...TASK_STATES].sort())
  })

  it('names each transition by the state it leads to', () => {
    for (const edges of Object.values(TRANSITIONS)) {
      for (const [event, to] of Object.entries(edges)) expect(TRANSITION_TO[to]).toBe(event)
    }
  })

  it('returns to pending only for a new attempt (C6)', () => {
    expect(isLegal({ state: 'executing', attempt: 1 }, { state: 'pending', attempt: 1 })).toBe(false)
    expect(isLegal({ state: 'executing', attempt: 1 }, { state: 'pending', attempt: 2 })).toBe(true)
    expect(isLegal({ state: 'executing', attempt: 1 }, { state: 'waiting_child', attempt: 2 })).toBe(false)
  })
})
