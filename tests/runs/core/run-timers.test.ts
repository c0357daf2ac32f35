import { expect, it } from 'vitest'
import { createRunTimers } from '../../../src/runs/core/events-and-effects.ts'

const stall = (node: string, at: number) => ({ type: 'set_timer', node, kind: 'stall', at }) as const

it('keeps a timer that is set while the row of another is being stored', () => {
  const clock = createRunTimers()
  clock.take(stall('slow', 1000))
  expect(clock.wanted()).toBe(1000)
  clock.claim()
  clock.take(stall('quick', 30))
  clock.arm(1000)
  expect(clock.wanted()).toBe(30)
  clock.claim()
  clock.arm(30)
  expect(clock.wanted()).toBeUndefined()
  expect(clock.takeDue(30)).toEqual([{ type: 'stalled', node: 'quick' }])
})
