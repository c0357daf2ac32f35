import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createTeamFolder, type TeamFolder } from '../../orc.ts'

let team: TeamFolder

const makes = (name: string) => `echo ${name} > outbox/${name}.txt; echo Made by ${name}. > outbox/summary.md`
/** Waits for a file, so that nothing depends on the speed of the machine. */
const untilGo = 'until test -e $PWD/../../../go; do sleep 0.05; done'
const FAILS = `agents: { s: { command: "echo x >> $PWD/../../../count; ${untilGo}; exit 1", retries: 0 } }\n`
const WAITS = `agents:
  patient: { command: "${untilGo}; ${makes('patient')}", retries: 0 }
  after: { command: "${makes('after')}", depends_on: [patient] }
`
const inTeam = (...parts: string[]) => join(team.folder, ...parts)
const plan = (text: string) => writeFileSync(inTeam('plan.yaml'), text)
const go = () => writeFileSync(inTeam('go'), '')
const count = () => readFileSync(inTeam('count'), 'utf8').length / 2

function pidOfService(): number {
  return JSON.parse(readFileSync(join(team.state, 'service.json'), 'utf8')).pid
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Kills the service with SIGKILL; returns its pid. */
async function killService(): Promise<number> {
  const pid = pidOfService()
  process.kill(pid, 'SIGKILL')
  await vi.waitFor(() => expect(isThere(pid)).toBe(false), 10_000)
  return pid
}

beforeEach(() => {
  team = createTeamFolder()
  writeFileSync(team.configFile, `${readFileSync(team.configFile, 'utf8')}service: { port: 0 }\n`)
})
afterEach(async () => {
  // Waiting agents end by themselves, and so does their service.
  go()
  await team.stop()
  await team.orc('down')
  await team.close()
})

describe('orc run --resume of a run whose service was killed', () => {
  /** Its only agent has failed after the kill, which no service has noticed. */
  async function interrupted() {
    plan(FAILS)
    expect((await team.orc('run plan.yaml -d')).out).toBe('run_1\n')
    await vi.waitFor(() => expect(count()).toBe(1), 10_000)
    await killService()
    go()
    await vi.waitFor(
      () => expect(readFileSync(inTeam('runs/run_1/_logs/s.1.exit'), 'utf8')).toMatch(/\n\d+\n/),
      10_000,
    )
    expect((await team.orc('runs')).out).toMatch(/^run_1 +running/)
  }

  it('returns to the open round, even if it ends before it is read', async () => {
    await interrupted()
    const back = await team.orc('run --resume run_1')
    expect(back).toMatchObject({ code: 9, err: 'run_1 is still running.\n' })
    expect(count()).toBe(1)
    const again = await team.orc('run --resume run_1')
    expect(again).toMatchObject({ code: 9, err: 'Resumed run_1, round 2.\n' })
    expect(count()).toBe(2)
  })

  it('starts one round if two resume at the same time', async () => {
    await interrupted()
    const both = await Promise.all([team.orc('run --resume run_1'), team.orc('run --resume run_1')])
    expect(both.map(({ code }) => code)).toEqual([9, 9])
    expect(count()).toBe(1)
    const next = await Promise.all([team.orc('run --resume run_1'), team.orc('run --resume run_1')])
    expect(next.map(({ code }) => code)).toEqual([9, 9])
    expect(count()).toBe(2)
  })
})

describe('orc run whose service is killed', () => {
  it('restarts a service for runs, and continues', async () => {
    plan(WAITS)
    const watching = team.begin('run plan.yaml --json')
    await watching.shows('patient is running')
    await killService()
    await vi.waitFor(() => expect(watching.err()).toContain('starting it again'), 20_000)
    go()
    const { code, json } = await watching.ended
    expect(code).toBe(0)
    expect(json().at(-1)).toMatchObject({ type: 'end', outcome: 'completed', round: 1 })
    expect((await team.orc('status')).code).toBe(5)
  })

  it('also restarts one that an earlier orc run started, at most three times', async () => {
    plan(WAITS)
    await team.orc('run plan.yaml -d')
    const watching = team.begin('run --resume run_1')
    await watching.shows('patient running')
    let pid = await killService()
    for (let restarts = 1; restarts <= 3; restarts++) {
      await vi.waitFor(() => expect(pidOfService()).not.toBe(pid), 20_000)
      await vi.waitFor(async () => expect((await team.orc('status')).code).toBe(0), 20_000)
      pid = await killService()
    }
    expect(await watching.ended).toMatchObject({
      code: 5,
      err: expect.stringMatching(/killed 4 times[\s\S]*orc run --resume run_1/),
    })
    expect((await team.orc('runs')).out).toMatch(/^run_1 +running/)
  }, 60_000)

  it('does not restart a service that somebody stopped', async () => {
    plan(WAITS)
    const watching = team.begin('run plan.yaml')
    await watching.shows('patient running')
    expect((await team.orc('down')).code).toBe(0)
    await vi.waitFor(() => expect(watching.err()).toContain('waiting for it'), 20_000)
    watching.child.kill('SIGINT')
    expect((await watching.ended).code).toBe(130)
    expect(existsSync(join(team.state, 'service.json'))).toBe(false)
  })

  it('ends with a run that another service finished meanwhile, and shows all events', async () => {
    plan(WAITS)
    const service = team.begin('serve')
    await service.shows('listens at')
    const watching = team.begin('run plan.yaml --json')
    await watching.shows('patient is running')
    service.child.kill('SIGKILL')
    await service.ended
    await vi.waitFor(() => expect(watching.err()).toContain('waiting for it'), 20_000)
    watching.child.kill('SIGSTOP')
    go()
    expect((await team.orc('run --resume run_1')).code).toBe(0)
    expect((await team.orc('status')).code).toBe(5)
    watching.child.kill('SIGCONT')
    const { code, json } = await watching.ended
    expect(code).toBe(0)
    const events = json() as { seq: number; type: string }[]
    expect(events).toContainEqual(expect.objectContaining({ node: 'after', state: 'completed' }))
    expect(events.at(-1)).toMatchObject({ type: 'end', outcome: 'completed' })
    expect(new Set(events.slice(0, -1).map(({ seq }) => seq)).size).toBe(events.length - 1)
  })
})

describe('a change to a run that is still going', () => {
  it('is refused with a hint; the same settings are accepted', async () => {
    await team.start()
    plan(WAITS)
    await team.orc('run plan.yaml -d --concurrency 2')
    const refused = async (args: string, why: string) => {
      const hint = expect.stringContaining('orc run cancel run_1')
      const { code, json } = await team.orc(`run ${args} --resume run_1 -d --json`)
      expect({ code, said: json() }).toMatchObject({
        code: 1,
        said: [{ code: 'CONFLICT', message: expect.stringContaining(why), hint }],
      })
    }
    await refused('--fresh', 'a fresh start')
    await refused('--concurrency 7', 'another concurrency than 2')
    expect((await team.orc('run plan.yaml --resume run_1 -d')).code).toBe(0)
    expect((await team.orc('run plan.yaml --concurrency 2 --resume run_1 -d')).code).toBe(0)
    plan(WAITS.replaceAll('after', 'later'))
    await refused('plan.yaml --concurrency 2', 'another plan')
    expect((await team.orc('run cancel run_1')).code).toBe(0)
    const { code, err } = await team.orc('run plan.yaml --resume run_1 --fresh -d')
    expect({ code, err }).toMatchObject({ code: 0, err: expect.stringContaining('Resumed run_1, round 2') })
    await team.orc('run cancel run_1')
  })
})

it.runIf(existsSync('/proc/self/environ'))(
  'does not end with the agent that started its service',
  async () => {
    plan(WAITS)
    await team.orc('run plan.yaml -d', { env: { ORC_SESSION: 'run-0123456789ab/run_1/a/attempt/1' } })
    expect(readFileSync(`/proc/${pidOfService()}/environ`, 'utf8')).not.toContain('run-0123456789ab')
  },
)
