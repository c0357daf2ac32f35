import { describe, expect, it } from 'vitest'
import {
  allowedAt,
  type Breaker,
  breakerState,
  CLOSED,
  recordOutcome,
} from '../../../src/tasks/core/circuit-breaker.ts'

const settings = { failures: 3, pauseMs: 1000 }
const after = (outcomes: ('success' | 'failure' | 'trial')[], now = 0, from: Breaker = CLOSED) =>
  outcomes.reduce((breaker, outcome) => recordOutcome(breaker, outcome, now, settings), from)
const OPEN = after(['failure', 'failure', 'failure'])

describe('the circuit breaker of an agent', () => {
  it('opens after a number of consecutive failures (ask 12)', () => {
    expect(breakerState(after(['failure', 'failure']), 0, settings)).toBe('closed')
    expect(breakerState(OPEN, 0, settings)).toBe('open')
    expect(allowedAt(OPEN, 200, settings)).toBe(1000)
  })

  it('resets its count after a success', () => {
    expect(breakerState(after(['failure', 'failure', 'success', 'failure', 'failure']), 0, settings)).toBe(
      'closed',
    )
  })

  it('lets one trial task pass after the pause, and no second one in the meantime', () => {
    expect(breakerState(OPEN, 1000, settings)).toBe('half_open')
    expect(allowedAt(OPEN, 1000, settings)).toBe(1000)
    expect(allowedAt(after(['trial'], 1000, OPEN), 1001, settings)).toBe(2000)
  })

  it('closes when the trial succeeds and reopens when it fails', () => {
    const tried = after(['trial'], 1000, OPEN)
    expect(after(['success'], 1200, tried)).toEqual(CLOSED)
    const again = after(['failure'], 1200, tried)
    expect(breakerState(again, 2199, settings)).toBe('open')
    expect(breakerState(again, 2200, settings)).toBe('half_open')
  })

  it('lets another trial pass if the first has no outcome', () => {
    expect(allowedAt(after(['trial'], 1000, OPEN), 2000, settings)).toBe(2000)
  })

  it('does not stay open longer for failures of earlier tasks', () => {
    expect(after(['failure'], 900, OPEN).openedAt).toBe(0)
  })
})
