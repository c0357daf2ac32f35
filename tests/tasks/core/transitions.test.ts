import { describe, expect, it } from 'vitest'
import { canMove, isLegal } from '../../../src/tasks/core/transitions.ts'
import { END_STATES, isEnd, TASK_STATES, type TaskState } from '../../../src/tasks/task.ts'

describe('the state machine of a task', () => {
  it.each(END_STATES)('has no transition from %s (C6)', (state) => {
    for (const other of TASK_STATES) {
      expect(canMove(state, other)).toBe(false)
      if (other !== state) expect(isLegal({ state, attempt: 1 }, { state: other, attempt: 2 })).toBe(false)
    }
  })

  it.each(TASK_STATES.filter((state) => !isEnd(state)))('can end in every way from %s (S2.1)', (state) => {
    expect(END_STATES.filter((end) => canMove(state, end))).toEqual([...END_STATES])
  })

  it('reaches every state from pending', () => {
    const reached = new Set<TaskState>(['pending'])
    for (const state of reached) for (const to of TASK_STATES) if (canMove(state, to)) reached.add(to)
    expect([...reached].sort()).toEqual([...TASK_STATES].sort())
  })

  it('returns to pending only for a new attempt (C6)', () => {
    expect(isLegal({ state: 'executing', attempt: 1 }, { state: 'pending', attempt: 1 })).toBe(false)
    expect(isLegal({ state: 'executing', attempt: 1 }, { state: 'pending', attempt: 2 })).toBe(true)
    expect(isLegal({ state: 'executing', attempt: 1 }, { state: 'waiting_child', attempt: 2 })).toBe(false)
  })
})
