import { describe, expect, it } from 'vitest'
import { layOutTree } from '../../../../web/src/views/agents/tree-layout.ts'

describe('the layout of the team graph', () => {
  const size = { width: 100, height: 50, gapX: 10, gapY: 10 }

  it('gives each agent its own position, parents above their children', () => {
    const members = [
      { name: 'A' },
      { name: 'B', parent: 'A' },
      { name: 'C', parent: 'A' },
      { name: 'D', parent: 'B' },
      { name: 'E', parent: 'nobody' },
    ]
    const places = layOutTree(members, size)
    expect(new Set([...places.values()].map(({ x, y }) => `${x},${y}`)).size).toBe(members.length)
    expect(places.get('A')!.y).toBeLessThan(places.get('B')!.y)
    expect(places.get('B')!.y).toBeLessThan(places.get('D')!.y)
    expect(places.get('E')!.y).toBe(0)
  })

  it('handles parents in a cycle, and a thousand agents', () => {
    expect(
      layOutTree(
        [
          { name: 'A', parent: 'B' },
          { name: 'B', parent: 'A' },
        ],
        size,
      ).size,
    ).toBe(2)
    const many = Array.from({ length: 1000 }, (_, index) => ({
      name: `a${index}`,
      parent: index === 0 ? undefined : 'a0',
    }))
    const places = layOutTree(many, size)
    expect(new Set([...places.values()].map(({ x, y }) => `${x},${y}`)).size).toBe(1000)
  })
})
