/** What is called off while it is being made ready does not begin afterwards. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { openRunTeam, type RunTeam, statesOf } from './run-harness.ts'

let team: RunTeam
afterEach(() => team.close())

/** So many that to remove or copy them takes a while. */
const MANY = 9000
const LONG_ENOUGH_TO_BEGIN = 1000

it('an attempt whose outbox is being cleared', async () => {
  team = await openRunTeam()
  for (let count = 0; count < 1000; count++) team.write(`in/f${count}`, 'x')
  const id = await team.start(
    'agents: { a: { command: "touch ../../../began; exec sleep 300", inputs: [in] } }',
  )
  await team.until(async () => existsSync(team.place(id, 'a')))
  await team.halt.stop('operator', undefined)
  await team.becomes(id, 'a', 'running')
  for (let count = 0; count < MANY; count++) writeFileSync(team.place(id, 'a', 'outbox', `f${count}`), '')
  await team.halt.go('operator')
  // In the midst of it, as a rule; at no moment may it begin.
  await pause(30)
  await team.runs.cancel(id, 'operator', 'enough')
  expect(statesOf(await team.ended(id))).toEqual({ a: 'cancelled' })
  await pause(LONG_ENOUGH_TO_BEGIN)
  expect(existsSync(join(team.plans, 'began'))).toBe(false)
})

it('a fixer whose inbox is being filled', async () => {
  team = await openRunTeam()
  for (let count = 0; count < MANY; count++) team.write(`in/f${count}`, 'x')
  const id = await team.start(`
agents: { a: { command: "exit 1", retries: 0, on_error: fix, fixer: mender, inputs: [in] } }
fixers: { mender: { command: "touch ../../../../began; exec sleep 300" } }
`)
  await team.until(async () => existsSync(team.place(id, '_fixes', 'a.1')))
  await team.runs.cancel(id, 'operator', 'enough')
  expect(statesOf(await team.ended(id))).toEqual({ a: 'cancelled' })
  await team.until(async () => existsSync(team.place(id, '_fixes', 'a.1', 'inbox', 'instructions.md')))
  await pause(LONG_ENOUGH_TO_BEGIN)
  expect(existsSync(join(team.plans, 'began'))).toBe(false)
})

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
