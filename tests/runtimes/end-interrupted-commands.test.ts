import { expect, it, vi } from 'vitest'
import { watchOrphans } from '../../src/runtimes/end-interrupted-commands.ts'
import type { ProcessFacts } from '../../src/runtimes/processes.ts'

const system = vi.hoisted(() => ({ processes: [] as ProcessFacts[], uptime: 100, ended: [] as number[] }))
vi.mock('node:os', async (original) => ({ ...(await original<object>()), uptime: () => system.uptime }))
vi.mock('../../src/runtimes/processes.ts', async (original) => ({
  ...(await original<object>()),
  readProcesses: async () => system.processes,
  endProcesses: async ({ leader }: { leader: { pid: number } }) => void system.ended.push(leader.pid),
}))

const PANE = 10
const of = (pid: number, parent: number, more: object = {}) => ({
  ...{ pid, parent, group: pid, isZombie: false, startedAt: '9900', mark: 'agent' },
  ...more,
})
const pane = of(PANE, 1, { startedAt: '100' })
const server = of(11, PANE, { group: PANE, startedAt: '110' })
const unmarked = of(12, 11, { group: PANE, startedAt: '110', mark: undefined })
const orphanBefore = of(30, 1)

/** Returns which of these processes are ended after an interrupt. */
async function endedOf(...after: ProcessFacts[]): Promise<number[]> {
  Object.assign(system, { processes: [pane, server, unmarked, orphanBefore], uptime: 100, ended: [] })
  const endOrphans = await watchOrphans(PANE, (error) => expect.unreachable(String(error)))
  Object.assign(system, { processes: after, uptime: 100.05 })
  await endOrphans()
  return system.ended
}

it.each([
  ['a command that its program lost', of(20, 1), true],
  ['a command of its program', of(20, 11), false],
  ['an orphan from before the interrupt', orphanBefore, false],
  ['a command whose parent shows no mark', of(20, 12), false],
  ['an older process', of(20, 1, { startedAt: '9700' }), false],
  ['a process of the next turn', of(20, 1, { startedAt: '10010' }), false],
  ['a process of another agent', of(20, 1, { mark: 'other' }), false],
  ['a process without a mark', of(20, 1, { mark: undefined }), false],
  ['a member of another group', of(20, 1, { group: 19 }), false],
  ['a process that has ended already', of(20, 1, { isZombie: true }), false],
])('ends %s, or not', async (_, one, isEnded) => {
  expect(await endedOf(pane, server, unmarked, one)).toEqual(isEnded ? [20] : [])
})

it('ends nothing if the pane itself has ended', async () => {
  expect(await endedOf(of(20, 1))).toEqual([])
})
