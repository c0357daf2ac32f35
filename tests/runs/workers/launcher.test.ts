/** Commands are started by a process of their own, which may die at any time. */
import { readFileSync } from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import { isRunning } from '../../../src/base/process.ts'
import { createRunMarks } from '../../../src/runs/process-marks.ts'
import { HAS_MARKS } from '../../../src/runtimes/processes.ts'
import { OPERATOR, send } from '../../harness/engine.ts'
import { MADE, openRunTeam, type RunTeam, statesOf } from '../harness.ts'

let team: RunTeam
afterEach(() => team.close())

/** The processes of this team's run. Other test files have a run_1, too, at the same time. */
async function processesOf(id: string) {
  const marks = createRunMarks(team.team().config.stateFolder)
  const found = [...(await marks.find())].filter(([mark]) => mark.startsWith(marks.ofRun(id)))
  return found.flatMap(([, processes]) => processes)
}

/** Starts an agent whose command ends once the test writes `go`, and finds the launcher, which is the parent of its group's leader. */
async function startWaiting(ending: string) {
  team = await openRunTeam()
  const id = await team.start(`
agents:
  a: { command: "while ! test -e ../../../go; do sleep 0.02; done; ${ending}", retries: 0 }
  b: { command: "${MADE} x > outbox/x", depends_on: [a] }
`)
  const leader = await team.until(async () => (await processesOf(id)).find(({ pid, group }) => pid === group))
  return { id, launcher: leader.parent }
}

async function killed(pid: number) {
  process.kill(pid, 'SIGKILL')
  await expect.poll(() => isRunning(pid)).toBe(false)
}

describe.runIf(HAS_MARKS)('a run whose launcher was killed', () => {
  it('keeps its running commands and starts the next ones', async () => {
    const { id, launcher } = await startWaiting(`${MADE} x > outbox/x`)
    await killed(launcher)
    team.write('go', '')
    const ended = await team.ended(id)
    expect(statesOf(ended)).toEqual({ a: 'completed', b: 'completed' })
    expect([...ended.run.nodes.values()].map(({ attempt }) => attempt)).toEqual([1, 1])
  })

  it('can still cancel its running commands', async () => {
    const { id, launcher } = await startWaiting(`${MADE} x > outbox/x`)
    await killed(launcher)
    await send(team, OPERATOR, 'cancel_run', { id })
    expect(statesOf(await team.ended(id))).toEqual({ a: 'cancelled', b: 'cancelled' })
    expect(await processesOf(id)).toEqual([])
  })

  it('knows the exit code of a command that failed', async () => {
    const { id, launcher } = await startWaiting('echo It broke.; exit 3')
    await killed(launcher)
    team.write('go', '')
    const { run } = await team.ended(id)
    expect(run.nodes.get('a')).toMatchObject({ state: 'failed', attempt: 1 })
    expect(run.nodes.get('a')!.reason).toContain('it exited with 3: It broke.')
  })
})

describe.runIf(HAS_MARKS)('the launcher', () => {
  it('has none of the environment of the service', async () => {
    const { launcher } = await startWaiting(`${MADE} x > outbox/x`)
    const names = readFileSync(`/proc/${launcher}/environ`, 'utf8')
      .split('\0')
      .map((variable) => variable.split('=')[0]!)
    expect(names.filter((name) => name !== '' && !name.startsWith('NODE_CHANNEL_'))).toEqual([])
  })

  it('ends with the service', async () => {
    const { launcher } = await startWaiting(`${MADE} x > outbox/x`)
    await team.close()
    await expect.poll(() => isRunning(launcher)).toBe(false)
  })
})
