import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTeamFolder, runOrc, type TeamFolder } from '../../orc.ts'

let team: TeamFolder

beforeEach(() => {
  team = createTeamFolder()
})
afterEach(() => team.close())

const plan = (text: string) => writeFileSync(join(team.folder, 'plan.yaml'), text)
const inRun = (...parts: string[]) => join(team.folder, 'runs/run_1', ...parts)

const SAYS_RUNNING = `echo '{"state":"running"}' > status.json`
const ENDED = `agents:
  silent: { command: "echo Summary > outbox/summary.md; echo r > outbox/r", retries: 0 }
  exits: { command: "exit 3", retries: 0 }
  killed: { command: ${JSON.stringify(`${SAYS_RUNNING}; kill -9 $$`)}, retries: 0 }
  late: { command: ${JSON.stringify(`${SAYS_RUNNING}; sleep 30`)}, timeout: 1s, retries: 0 }
`
const STATES = { silent: 'completed', exits: 'failed', killed: 'failed', late: 'failed' }

async function statesShown(folder = 'runs/run_1'): Promise<Record<string, string>> {
  const shown = (await team.orc(`workspace show ${folder} --json`)).json()
  return Object.fromEntries(
    (shown as { name: string; state: string }[]).map(({ name, state }) => [name, state]),
  )
}

describe('the workspaces of a run that has ended', () => {
  it('are shown and dissolved with the state of the run, whatever their status.json says', async () => {
    plan(ENDED)
    expect((await team.orc('run plan.yaml')).code).toBe(9)
    expect(await statesShown()).toEqual(STATES)
    expect(await statesShown('runs/run_1/killed')).toEqual({ killed: 'failed' })
    await team.start()
    expect(await statesShown()).toEqual(STATES)
    const { code, out } = await team.orc('workspace dissolve runs/run_1')
    expect(code).toBe(0)
    for (const [name, state] of Object.entries(STATES)) expect(out).toContain(`| ${name} | ${state} |`)
    expect(existsSync(inRun('late'))).toBe(false)
  })
})

describe.runIf(process.platform === 'linux')('the workspace of a command that outlives its service', () => {
  it('is not dissolved, from any working folder', async () => {
    plan(
      'agents: { slow: { command: "echo $$ > pid; exec sleep 60" }, after: { command: "true", depends_on: [slow] } }',
    )
    await team.orc('run plan.yaml --detach')
    const pid = await until(() => Number(read(inRun('slow/pid'))))
    try {
      await kill(JSON.parse(read(join(team.state, 'service.json'))).pid)
      expect(await statesShown()).toMatchObject({ slow: 'running' })
      const refusal = {
        code: 1,
        err: expect.stringContaining(`run_1 is still running: slow (process ${pid})`),
      }
      expect(await team.orc('workspace dissolve runs/run_1')).toMatchObject(refusal)
      expect(await team.orc('workspace dissolve runs/run_1/slow --force')).toMatchObject(refusal)
      expect(await runOrc('/', ['workspace', 'dissolve', inRun(), '--force'])).toMatchObject(refusal)
      expect(existsSync(inRun('slow/pid'))).toBe(true)
    } finally {
      await kill(pid)
    }
    expect(await team.orc('workspace dissolve runs/run_1')).toMatchObject({
      code: 1,
      err: expect.stringMatching(/run_1 has not ended[\s\S]*--resume run_1[\s\S]*--force/),
    })
    expect((await team.orc('workspace dissolve runs/run_1 --force')).code).toBe(0)
    expect(existsSync(inRun('slow'))).toBe(false)
  })
})

function read(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}

async function until<T>(look: () => T): Promise<T> {
  const deadline = Date.now() + 20_000
  for (;;) {
    const seen = look()
    if (seen || Date.now() > deadline) return seen
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Kills a process and waits until it is gone. */
async function kill(pid: number): Promise<void> {
  process.kill(pid, 'SIGKILL')
  await until(() => /^(|.*\) [ZX] .*)$/s.test(read(`/proc/${pid}/stat`)))
}
