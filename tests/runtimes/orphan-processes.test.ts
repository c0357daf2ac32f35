import { expect, it } from 'vitest'
import { findOrphans } from '../../src/runtimes/processes.ts'

const PANE = 10
const BEFORE = { spared: new Set(['30 9900']), from: 98 }
const ENDED = 100.05
const of = (pid: number, parent: number, more: object = {}) => ({
  ...{ pid, parent, group: pid, isZombie: false, startedAt: '9900', mark: 'agent' },
  ...more,
})
const pane = of(PANE, 1, { startedAt: '100' })
const server = of(11, PANE, { group: PANE, startedAt: '110' })
const secretive = of(12, 11, { group: PANE, startedAt: '110', mark: undefined })

it.each([
  ['a command that nobody knows any more', of(20, 1), true],
  ['one that its server knows', of(20, 11), false],
  ['one that had left the agent before, on purpose', of(30, 1), false],
  ['one whose parent shows no mark, and is the agent’s', of(20, 12), false],
  ['one that was there before', of(20, 1, { startedAt: '9700' }), false],
  ['one of the next turn', of(20, 1, { startedAt: '10010' }), false],
  ['one of somebody else', of(20, 1, { mark: 'other' }), false],
  ['one without a mark', of(20, 1, { mark: undefined }), false],
  ['a part of another group', of(20, 1, { group: 19 }), false],
  ['what has ended already', of(20, 1, { isZombie: true }), false],
])('knows %s', (_, one, isStray) => {
  const found = findOrphans([pane, server, secretive, one], PANE, BEFORE, ENDED)
  expect(found.map(({ pid }) => pid)).toEqual(isStray ? [20] : [])
})

it('finds no orphan if the pane itself has ended', () => {
  expect(findOrphans([of(20, 1)], PANE, BEFORE, ENDED)).toEqual([])
})
