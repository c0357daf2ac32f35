/** The service that `orc run` starts for itself ends by itself. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { createTeamFolder } from '../cli/orc.ts'

it('ends by itself after its last run, even without a watcher (--detach)', {
  timeout: 90_000,
}, async () => {
  const team = createTeamFolder('agents: { Idle: {} }\nservice: { port: 0 }\n')
  onTestFinished(async () => {
    await team.orc('down')
    await team.close()
  })
  const made = 'echo It is made. > outbox/summary.md; echo x > outbox/x'
  const plan = `agents: { one: { command: "until test -e $PWD/../../../go; do sleep 0.1; done; ${made}" } }`
  writeFileSync(join(team.folder, 'plan.yaml'), plan)
  expect((await team.orc('run plan.yaml --detach')).code).toBe(0)
  await new Promise((resolve) => setTimeout(resolve, 12_000))
  // The service stays up while a run is active.
  expect((await team.orc('status')).code).toBe(0)
  expect((await team.orc('runs --open')).out).toContain('run_1')
  writeFileSync(join(team.folder, 'go'), '')
  await vi.waitFor(async () => expect((await team.orc('status')).code).toBe(5), {
    timeout: 60_000,
    interval: 1000,
  })
  expect(existsSync(join(team.folder, 'runs/run_1/report.md'))).toBe(true)
})
