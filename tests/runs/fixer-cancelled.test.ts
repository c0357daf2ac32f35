import { existsSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { openRunTeam, type RunTeam, statesOf } from './harness.ts'

let team: RunTeam
afterEach(() => team.close())

/** Reading so much takes seconds, although it takes no space on the disk. */
const SPARSE_BYTES = 2 ** 30
const LONG_ENOUGH_TO_BEGIN = 1000

it('does not start a fixer that was cancelled while its inbox was filled', async () => {
  team = await openRunTeam()
  truncateSync(team.write('in/large', ''), SPARSE_BYTES)
  const id = await team.start(`
agents: { a: { command: "exit 1", retries: 0, on_error: fix, fixer: mender, inputs: [in] } }
fixers: { mender: { command: "touch ../../../../began; exec sleep 300" } }
`)
  await team.until(async () => existsSync(team.pathIn(id, '_fixes', 'a.1')))
  await team.runs.cancel(id, 'operator', 'enough')
  expect(statesOf(await team.ended(id))).toEqual({ a: 'cancelled' })
  await team.until(async () => existsSync(team.pathIn(id, '_fixes', 'a.1', 'inbox', 'instructions.md')))
  await pause(LONG_ENOUGH_TO_BEGIN)
  expect(existsSync(join(team.plans, 'began'))).toBe(false)
})

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
