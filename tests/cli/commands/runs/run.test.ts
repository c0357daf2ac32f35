import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { lockStore } from '../../../../src/store/sqlite/open.ts'
import { createTeamFolder, type TeamFolder } from '../../orc.ts'
import { hasTerminals, openTerminal } from '../../own-terminal.ts'

let team: TeamFolder
const made: TeamFolder[] = []

/** An agent of a plan in one line: its name as deliverable, and a summary. */
const makes = (name: string) => `echo ${name} > outbox/${name}.txt; echo Made by ${name}. > outbox/summary.md`

const CHAIN = `name: Chain
agents:
  first: { command: "${makes('first')}", inputs: [seed.txt] }
  second: { command: "cat inbox/first/first.txt; ${makes('second')}", depends_on: [first] }
`
/** Waits for a file, so that nothing depends on the speed of the machine. */
const WAITS = `name: Patient
agents:
  patient: { command: "until test -e $PWD/../../../go; do sleep 0.05; done; ${makes('patient')}", retries: 0 }
  after: { command: "${makes('after')}", depends_on: [patient] }
`
const plan = (text: string, name = 'plan.yaml') => writeFileSync(join(team.folder, name), text)
const inRun = (...parts: string[]) => join(team.folder, 'runs', 'run_1', ...parts)

beforeEach(() => {
  team = createTeamFolder()
  made.push(team)
  writeFileSync(join(team.folder, 'seed.txt'), 'seed')
})
afterEach(() => team.close())
afterAll(() => {
  for (const { folder } of made) expect(existsSync(folder)).toBe(false)
})

describe('orc run in a pipe', () => {
  it('runs a plan, line by line, and prints the paths of outputs and reports', async () => {
    await team.start()
    plan(CHAIN)
    const { code, out, err } = await team.orc('run plan.yaml')
    expect(err).toBe('')
    expect(code).toBe(0)
    expect(out).toMatch(/^\d\d:\d\d:\d\d first running$/m)
    expect(out.indexOf('first completed')).toBeLessThan(out.indexOf('second running'))
    expect(out).toMatch(/Chain \(run_1\) completed: 2 of 2 agents done/)
    expect(out).toContain('runs/run_1/report.md, runs/run_1/report.html')
    expect(readFileSync(inRun('_outputs/second/second.txt'), 'utf8')).toBe('second\n')
    expect(readFileSync(inRun('report.md'), 'utf8')).toContain('Made by second.')
    expect(readFileSync(inRun('report.html'), 'utf8')).toContain('</html>')
  })

  it('prints JSON events, the last of them the end', async () => {
    await team.start()
    plan(CHAIN)
    const ran = await team.orc('run plan.yaml --json')
    const events = ran.json() as { type: string }[]
    expect(events[0]).toMatchObject({ type: 'begun', run_id: 'run_1', agents: 2 })
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'node', node: 'first', state: 'completed' }),
    )
    expect(events.at(-1)).toMatchObject({ type: 'end', outcome: 'completed' })
  })

  it('exits with 9 if an agent failed and with 10 if one was skipped', async () => {
    await team.start()
    plan(`agents:
  bad: { command: "exit 3", retries: 0 }
  after: { command: "true", depends_on: [bad] }
`)
    const failed = await team.orc('run plan.yaml')
    expect(failed.code).toBe(9)
    expect(failed.out).toMatch(/✗ bad +failed/)
    plan(`agents:
  bad: { command: "exit 3", retries: 0, on_error: skip }
  after: { command: "${makes('after')}", depends_on: [{ agent: bad, on_failure: proceed }] }
`)
    expect((await team.orc('run plan.yaml')).code).toBe(10)
  })

  it('does not run agents again that completed with the same inputs (S4.12)', async () => {
    await team.start()
    plan(CHAIN)
    await team.orc('run plan.yaml')
    const same = await team.orc('run plan.yaml --resume run_1')
    expect(same).toMatchObject({ code: 0, err: 'Resumed run_1, round 2.\n' })
    expect(same.out).toContain('first completed as before')
    expect(same.out).toMatch(/✓ second +as before/)
    writeFileSync(join(team.folder, 'seed.txt'), 'other')
    const changed = await team.orc('run --resume run_1')
    expect(changed.out).toMatch(/first running/)
    expect(changed.out).toMatch(/✓ second +as before/)
    expect((await team.orc('run --resume run_1 --fresh')).out).toMatch(/second running/)
  })

  it('returns at once with --detach; the run is shown, listed and cancelled, and exits with 11', async () => {
    await team.start()
    plan(WAITS)
    const started = await team.orc('run plan.yaml --detach')
    expect(started).toMatchObject({ code: 0, out: 'run_1\n' })
    expect((await team.orc('runs')).out).toMatch(/^run_1 +running +0 of 2 /)
    const shown = (await team.orc('run show run_1')).out
    expect(shown).toMatch(/· after +waiting +for patient/)
    await team.fails('workspace dissolve runs/run_1 --force', 1, 'run_1 is still running')
    const watching = team.begin('run --resume run_1')
    await watching.shows('patient running')
    expect((await team.orc('run cancel run_1 --reason enough')).out).toBe('run_1 is being cancelled.\n')
    expect((await watching.ended).code).toBe(11)
    expect((await team.orc('run cancel run_1')).out).toBe('run_1 has already ended.\n')
    expect((await team.orc('runs --open --json')).json()).toEqual([])
    expect((await team.orc('run report run_1')).out).toContain('cancelled')
    expect((await team.orc('workspace dissolve runs/run_1 --force')).code).toBe(0)
    expect((await team.orc('run show run_9')).code).toBe(7)
  })

  it("delivers a person's message to an agent of a run (S4.16)", async () => {
    await team.start()
    const heard = '../messages/operator_to_ear_002.json'
    const command = `until test -e ${heard}; do sleep 0.05; done; cat ${heard} > outbox/heard.json; ${makes('ear')}`
    plan(`messages: true\nagents:\n  ear: { command: "${command}" }\n`)
    await team.orc('run plan.yaml --detach')
    expect((await team.orc('run send run_1 nobody hello')).code).toBe(7)
    // The maximum length of a message (C20), whatever its size as JSON.
    const say = (content: string) => team.orc(['run', 'send', 'run_1', 'ear', '-'], { input: content })
    expect(await say('"'.repeat(51_000))).toMatchObject({
      code: 0,
      out: 'messages/operator_to_ear_001.json\n',
    })
    expect((await say('x'.repeat(102_400))).err).toContain('The message is over 102400 bytes')
    const sent = await team.orc(['run', 'send', 'run_1', 'ear', 'Can', 'you hear me?', '--type', 'question'])
    expect(sent).toMatchObject({ code: 0, out: 'messages/operator_to_ear_002.json\n', err: '' })
    expect((await team.orc('run --resume run_1')).code).toBe(0)
    expect(JSON.parse(readFileSync(inRun('ear/outbox/heard.json'), 'utf8'))).toMatchObject({
      from: 'operator',
      type: 'question',
      content: 'Can you hear me?',
    })
    expect((await team.orc('run send run_1 ear again')).err).toContain('run_1 has ended')
  })

  it('says that a person is asked, and continues with an answer given elsewhere (S4.12)', async () => {
    await team.start()
    plan('agents: { bad: { command: "exit 3", retries: 0, on_error: escalate } }')
    const watching = team.begin('run plan.yaml')
    await watching.shows('bad asks a person: orc inbox shows req_1')
    expect((await team.orc('inbox')).out).toContain('run_1: bad failed')
    expect((await team.orc('answer req_1 skip')).code).toBe(0)
    expect((await watching.ended).code).toBe(10)
  })

  it('stays with a run whose service is killed and restarted', async () => {
    plan(WAITS)
    const first = team.begin('serve --port 0')
    await first.shows('listens at')
    const watching = team.begin('run plan.yaml')
    await watching.shows('patient running')
    first.child.kill('SIGKILL')
    await first.ended
    await vi.waitFor(() => expect(watching.err()).toContain('The service is unreachable'), 20_000)
    const second = team.begin('serve --port 0')
    await second.shows('listens at')
    writeFileSync(join(team.folder, 'go'), '')
    const { code, err, out } = await watching.ended
    expect(err).toContain('The service is back.')
    expect(out).toMatch(/run_1\) completed: 2 of 2/)
    expect(code).toBe(0)
    second.child.kill('SIGTERM')
    await second.ended
  })

  it('exits with Ctrl-C and says how to return; the run continues', async () => {
    await team.start()
    plan(WAITS)
    const watching = team.begin('run plan.yaml')
    await watching.shows('patient running')
    watching.child.kill('SIGINT')
    expect(await watching.ended).toMatchObject({
      code: 130,
      err: 'run_1 keeps running. Return to it with: orc run --resume run_1\n',
    })
    writeFileSync(join(team.folder, 'go'), '')
    const back = await team.orc('run --resume run_1')
    expect(back).toMatchObject({ code: 0, out: expect.stringMatching(/run_1\) completed/) })
  })
})

describe('orc run without a service', () => {
  it('starts one in the background and ends it with the run', async () => {
    plan(CHAIN)
    writeFileSync(team.configFile, `${readFileSync(team.configFile, 'utf8')}service: { port: 0 }\n`)
    const ran = await team.orc('run plan.yaml')
    expect(ran).toMatchObject({ code: 0, err: '' })
    expect(await team.orc('status')).toMatchObject({ code: 5 })
  })

  it('can be shown from the store after both have ended', async () => {
    expect(await team.orc('runs')).toMatchObject({ code: 5 })
    expect(existsSync(join(team.state, 'orc.db'))).toBe(false)
    plan(CHAIN)
    writeFileSync(team.configFile, `${readFileSync(team.configFile, 'utf8')}service: { port: 0 }\n`)
    expect((await team.orc('run plan.yaml')).code).toBe(0)
    expect((await team.orc('runs')).out).toMatch(/^run_1 +completed +2 of 2 /)
    expect((await team.orc('runs --limit 0')).code).toBe(2)
    expect(await team.orc('runs --open')).toMatchObject({
      code: 0,
      out: '',
      err: 'There are no open runs.\n',
    })
    const shown = await team.orc('run show run_1 --json')
    expect(shown.json()).toMatchObject([
      { id: 'run_1', state: 'completed', report: inRun('report.md'), nodes: [{ name: 'first' }, {}] },
    ])
    expect((await team.orc('run report run_1')).out).toContain('Made by second.')
    // Neither agent has updated its status.json.
    expect(JSON.parse(readFileSync(inRun('first/status.json'), 'utf8')).state).toBe('pending')
    expect((await team.orc('workspace runs/run_1')).out).toMatch(/^first +completed .*\nsecond +completed /)
    const one = await team.orc('workspace runs/run_1/second --json')
    expect(one.json()).toMatchObject([{ name: 'second', state: 'completed' }])
    await team.fails('run show run_9', 7, 'run_9')
    const asAgent = await team.orc('runs', { env: { ORC_TOKEN: 'orc_x' } })
    expect(asAgent).toMatchObject({ code: 5, out: '' })
  })

  describe('reads a store', () => {
    const file = () => join(team.state, 'orc.db')
    const unreached = { code: 5, out: '', err: expect.stringContaining('SERVICE_UNREACHABLE') }
    const inStore = <T>(use: (database: DatabaseSync) => T): T => {
      const database = new DatabaseSync(file())
      try {
        return use(database)
      } finally {
        database.close()
      }
    }

    beforeEach(async () => {
      plan(CHAIN)
      writeFileSync(team.configFile, `${readFileSync(team.configFile, 'utf8')}service: { port: 0 }\n`)
      expect((await team.orc('run plan.yaml')).code).toBe(0)
    })

    it('without changing it: no lease, no new file, not one byte', async () => {
      rmSync(`${file()}.holder`)
      const daemons = () => inStore((database) => database.prepare('SELECT * FROM daemons').all())
      const before = { bytes: readFileSync(file()), daemons: daemons() }
      for (const verb of ['runs', 'run show run_1', 'run report run_1', 'workspace runs/run_1'])
        expect(await team.orc(verb)).toMatchObject({ code: 0, err: '' })
      expect(existsSync(`${file()}.holder`)).toBe(false)
      expect(daemons()).toEqual(before.daemons)
      expect(readFileSync(file()).equals(before.bytes)).toBe(true)
    })

    it('also after a service was killed', async () => {
      const service = team.begin('serve --port 0')
      await service.shows('listens at')
      // The command ends by itself.
      plan('agents: { slow: { command: "sleep 10", retries: 0 } }')
      expect(await team.orc('run plan.yaml --detach')).toMatchObject({ code: 0, out: 'run_2\n' })
      service.child.kill('SIGKILL')
      await service.ended
      expect((await team.orc('runs --open')).out).toMatch(/^run_2 +running /)
    })

    it('only of its own version, and migrates none: reports the service as unreachable', async () => {
      const version = (of: string) =>
        inStore((database) => {
          database.prepare(`UPDATE meta SET value = ? WHERE key = 'schema_version'`).run(of)
        })
      for (const other of ['1', '9999']) {
        version(other)
        expect(await team.orc('runs')).toMatchObject(unreached)
        expect(
          inStore((database) =>
            database.prepare(`SELECT value FROM meta WHERE key = 'schema_version'`).get(),
          ),
        ).toEqual({ value: other })
      }
    })

    it('only without a service: one that holds it and does not answer is unreachable', async () => {
      const lock = lockStore(file(), { daemon: 'main', address: '', pid: 1, host: '', leaseMs: 1 })
      try {
        expect(await team.orc('run show run_1')).toMatchObject(unreached)
      } finally {
        lock.release()
      }
      expect((await team.orc('run show run_1')).code).toBe(0)
    })

    it('only of SQLite, not of a shared database', async () => {
      const shared = 'store: { url: "postgres://nobody@127.0.0.1:1/none" }\n'
      writeFileSync(team.configFile, `${readFileSync(team.configFile, 'utf8')}${shared}`)
      expect(await team.orc('runs')).toMatchObject(unreached)
    })
  })

  it('needs no orc.yaml for a plan of commands, and leaves a running run to the service it started', async () => {
    rmSync(team.configFile)
    plan(WAITS)
    const watching = team.begin('run plan.yaml')
    await watching.shows('patient running')
    watching.child.kill('SIGINT')
    expect((await watching.ended).err).toContain('To stop both: orc down')
    expect((await team.orc('runs')).out).toContain('run_1')
    writeFileSync(join(team.folder, 'go'), '')
    expect((await team.orc('run --resume run_1')).code).toBe(0)
    expect((await team.orc('down')).code).toBe(0)
    expect(existsSync(join(team.folder, '.orc', 'orc.yaml'))).toBe(true)
  })

  it('runs one plan twice in parallel', async () => {
    rmSync(team.configFile)
    plan(CHAIN)
    const both = await Promise.all([team.orc('run plan.yaml'), team.orc('run plan.yaml')])
    expect(both.map(({ code }) => code)).toEqual([0, 0])
    expect(existsSync(join(team.folder, 'runs/run_2/report.md'))).toBe(true)
  })
})

describe.runIf(hasTerminals)('orc run on a terminal', () => {
  it('redraws each agent without clearing first, and ends with the summary', async () => {
    await team.start()
    plan(WAITS)
    const terminal = openTerminal(team.folder, 'run plan.yaml')
    await terminal.shows(/▸ patient +running/)
    await terminal.shows(/· after +waiting +for patient/)
    await terminal.shows('Ctrl-C leaves it running; return with orc run --resume run_1')
    writeFileSync(join(team.folder, 'go'), '')
    expect(await terminal.ended).toBe(0)
    expect(terminal.out()).toMatch(/✓ after +completed[\s\S]*run_1\) completed: 2 of 2 agents done/)
    // Erases only below what was just written.
    expect(terminal.out()).not.toMatch(/\u001b\[2J|\u001b\[\d*A\u001b\[J/)
  })

  it('exits with Ctrl-C', async () => {
    await team.start()
    plan(WAITS)
    const terminal = openTerminal(team.folder, 'run plan.yaml')
    await terminal.shows(/▸ patient +running/)
    terminal.type('\u0003')
    expect(await terminal.ended).toBe(130)
    expect(terminal.out()).toContain('Return to it with: orc run --resume run_1')
    await team.orc('run cancel run_1')
  })
})
