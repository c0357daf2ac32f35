import { expect, it } from 'vitest'
import { createRunTimers } from '../../../src/runs/core/events-and-effects.ts'
import { createRun } from '../../../src/runs/run.ts'
import { definePlan } from '../define-plan.ts'

it('keeps a timer that is set while the row of another is being stored', () => {
  const plan = definePlan({ agents: { slow: { command: 'x' }, quick: { command: 'x' } } })
  const run = createRun({ id: 'run_1', plan, now: 0 })
  const timers = createRunTimers(run)
  const stall = (node: string, at: number) => {
    const changed = { ...run.nodes.get(node)!, stallAt: at }
    run.nodes.set(node, changed)
    timers.changed({ head: run.head, nodes: [changed] })
  }
  stall('slow', 1000)
  expect(timers.wanted()).toBe(1000)
  timers.claim()
  stall('quick', 30)
  timers.arm(1000)
  expect(timers.wanted()).toBe(30)
  timers.claim()
  timers.arm(30)
  expect(timers.wanted()).toBeUndefined()
  expect(timers.takeDue(30)).toEqual([{ type: 'stalled', node: 'quick' }])
})
