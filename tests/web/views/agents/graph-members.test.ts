import { describe, expect, it } from 'vitest'
import { byNeed, graphMembers } from '../../../../web/src/views/agents/graph-members.ts'

describe('the members that the team graph draws', () => {
  it('are the top of a large team and everyone who needs a person, with the number of hidden descendants', () => {
    const member = (index: number) => ({
      name: `a${index}`,
      parent: index === 0 ? undefined : `a${Math.floor((index - 1) / 10)}`,
      session: 'idle',
      asks: index === 999,
    })
    const members = Array.from({ length: 1000 }, (_, index) => member(index))
    const { drawn, below } = graphMembers(members, 80)
    const names = drawn.map(({ name }) => name)
    // Two levels, and a999 below a99 below a9.
    expect(names).toEqual([...Array.from({ length: 11 }, (_, index) => `a${index}`), 'a99', 'a999'])
    expect([...below.values()].reduce((sum, count) => sum + count, 0)).toBe(1000 - drawn.length)
    const part = graphMembers(members, 80, 'a5')
    expect(part.drawn.every(({ name }) => name === 'a5' || /^a(5[1-9]|60)$/.test(name))).toBe(true)
    expect(part.drawn).toHaveLength(11)
    expect(part.below.get('a51')).toBe(10)
    // Agents with requests are drawn even if the top level alone fills the graph.
    const flat = Array.from({ length: 200 }, (_, index) => ({
      name: `f${index}`,
      session: index === 198 ? 'error' : 'idle',
      asks: index === 199,
    }))
    const few = graphMembers(flat, 80).drawn.map(({ name }) => name)
    expect(few).toHaveLength(80)
    expect(few.slice(-2)).toEqual(['f198', 'f199'])
    expect(
      flat
        .toSorted(byNeed)
        .map(({ name }) => name)
        .slice(0, 3),
    ).toEqual(['f199', 'f198', 'f0'])
    const circle = [
      { name: 'A', parent: 'B', session: 'idle', asks: false },
      { name: 'B', parent: 'A', session: 'idle', asks: false },
    ]
    expect(graphMembers(circle, 1).drawn.length).toBeLessThanOrEqual(2)
  })
})
