import { describe, expect, it } from 'vitest'
import { allEnded, descendantsOf, findCycle } from '../../../src/tasks/core/snapshot.ts'
import type { Task } from '../../../src/tasks/task.ts'

type Kin = Pick<Task, 'id' | 'parent' | 'agent' | 'delegator' | 'state'>

const kin = (id: string, parent: string | null, state: Task['state'] = 'executing'): Kin => ({
  id,
  parent,
  state,
  agent: id,
  delegator: parent ?? 'operator',
})
const FAMILY = [kin('a', null), kin('b', 'a'), kin('c', 'a', 'completed'), kin('d', 'b'), kin('x', null)]

describe('a tree of tasks', () => {
  it('lists all descendants of a task, parents before children', () => {
    expect(descendantsOf(FAMILY, 'a').map(({ id }) => id)).toEqual(['b', 'c', 'd'])
  })

  it('has ended only if each awaited child is known to have ended', () => {
    expect(allEnded(['c'], FAMILY)).toBe(true)
    expect(allEnded(['b', 'c'], FAMILY)).toBe(false)
    expect(allEnded(['nobody'], FAMILY)).toBe(false)
  })
})

describe('a cycle of agents', () => {
  const line = (...agents: string[]) =>
    agents.map((agent, index) => ({ agent, delegator: agents[index - 1] ?? 'operator' }))

  it.each([
    ['to itself', ['A'], 'A', ['A', 'A']],
    ['back to its delegator', ['A', 'B'], 'A', ['A', 'B', 'A']],
    ['through three agents', ['A', 'B', 'C'], 'A', ['A', 'B', 'C', 'A']],
    ['that begins below the root', ['A', 'B', 'C'], 'B', ['B', 'C', 'B']],
  ])('is found %s (ask 12)', (_, chain, to, path) => {
    expect(findCycle(line(...chain), chain.at(-1)!, to)).toEqual(path)
  })

  it('includes an agent that delegated without a task of its own', () => {
    const ancestors = [
      { agent: 'B', delegator: 'A' },
      { agent: 'C', delegator: 'B' },
    ]
    expect(findCycle(ancestors, 'C', 'A')).toEqual(['A', 'B', 'C', 'A'])
    expect(findCycle([], 'A', 'A')).toEqual(['A', 'A'])
  })

  it('is absent if the agent works on no ancestor', () => {
    expect(findCycle(line('A', 'B'), 'B', 'C')).toBeUndefined()
    expect(findCycle([], 'operator', 'A')).toBeUndefined()
  })
})
