import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { readProcesses } from '../../../src/runtimes/processes.ts'
import { openTeam, type TaskTeam } from '../harness.ts'

let team: TaskTeam
afterEach(() => team.close())

const PAIR = { Master: {}, Worker: { parent: 'Master' } }

async function openWith(checks: Record<string, { command: string; timeout?: string }>, more = {}) {
  team = await openTeam(PAIR, { tasks: { checks, retries: 1 }, ...more })
  await team.rest('Master', 'Worker')
}

async function report(result = 'Done') {
  return await team.say('Worker', 'report', { status: 'completed', result })
}

async function validated(ms = 0) {
  await team.until(async () => (await team.task('task_1')).claim === null, ms)
  return await team.task('task_1')
}

async function checked(...checks: string[]) {
  await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it', checks })
  await report()
  return await validated()
}

const lastChecks = ({ evidence }: Awaited<ReturnType<typeof validated>>) =>
  evidence.findLast(({ step }) => step === 'checks')!

describe('a report of completed', () => {
  it('counts when its checks pass, with exit code and output as evidence (C22)', async () => {
    await openWith({ tests: { command: 'echo all good; exit 0' } })
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it', checks: ['tests'] })
    expect(await report()).toMatchObject({ result: 'task_1 is under validation' })
    expect(await team.task('task_1')).toMatchObject({ state: 'executing', result: null })
    expect(await team.mailOf('Master')).toEqual([])
    const task = await validated()
    expect(task).toMatchObject({ state: 'completed', result: 'Done' })
    expect(task.evidence.map(({ step, outcome }) => [step, outcome])).toEqual([
      ['schema', 'passed'],
      ['checks', 'passed'],
      ['judge', 'skipped'],
    ])
    expect(lastChecks(task)).toMatchObject({
      text: 'tests passed (exit code 0)\nall good',
      findings: { checks: [{ name: 'tests', passed: true, exitCode: 0, output: 'all good\n' }] },
    })
    expect(team.turn('Master')).toContain('Done')
  })

  it('goes back with the reason when it fails, up to the limit, then to its parent: validation failure and retry (S2.17)', async () => {
    await openWith({ tests: { command: 'true' }, lint: { command: 'echo line 3 is too long; exit 7' } })
    await checked('tests', 'lint')
    await team.ends('Worker')
    expect(team.turn('Worker')).toContain('Task: task_1 (follow_up)')
    expect(team.turn('Worker')).toContain('lint failed (exit code 7)\nline 3 is too long')
    await report('Done again')
    expect(await validated()).toMatchObject({ state: 'waiting_parent', rejections: 1 })
    expect(team.turn('Master')).toContain('Task: task_1 (needs_help)')
    await team.says('Master', 'task_action', { task_id: 'task_1', action: 'fail', text: 'never mind' })
    expect(await team.task('task_1')).toMatchObject({ state: 'failed', reason: 'never mind' })
  })

  it('is refused when it is empty, before any check is run (S2.11, C22)', async () => {
    await openWith({ mark: { command: 'touch ran' } })
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it', checks: ['mark'] })
    await report('  ')
    await team.settle()
    expect(await team.task('task_1')).toMatchObject({ state: 'executing', rejections: 1, claim: null })
    expect(existsSync(join(team.folder, 'ran'))).toBe(false)
  })

  it('stops at the first check that fails', async () => {
    await openWith({ first: { command: 'exit 1' }, second: { command: 'touch ran' } })
    await checked('first', 'second')
    expect(existsSync(join(team.folder, 'ran'))).toBe(false)
  })

  it('is left to the parent if orc.yaml no longer has the check', async () => {
    await openWith({ tests: { command: 'true' } })
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it', checks: ['tests'] })
    const { config } = team.team()
    await team.engine.reload({ ...config, tasks: { ...config.tasks, checks: {} } })
    await report()
    const task = await validated()
    expect(task.state).toBe('waiting_parent')
    expect(lastChecks(task)).toMatchObject({
      outcome: 'unavailable',
      text: 'orc.yaml no longer has a check "tests"',
    })
  })

  it('is checked by a command of the delegator only with the permission declare_checks', async () => {
    await openWith({})
    const fields = { to: 'Worker', task: 'Do it', checks: ['touch never'] }
    expect(await team.says('Master', 'delegate', fields)).toMatchObject({ status: 'blocked' })
    await team.close()
    team = await openTeam({ ...PAIR, Master: { permissions: { declare_checks: 'allow' } } })
    await team.rest('Master', 'Worker')
    expect(await checked('test -d .')).toMatchObject({ state: 'completed' })
  })
})

describe('a check', () => {
  it('runs in the folder of the worker, and reports the commit and uncommitted changes', async () => {
    team = await openTeam(
      { ...PAIR, Worker: { parent: 'Master', folder: 'app' } },
      {
        tasks: { checks: { where: { command: 'pwd' } } },
      },
    )
    await team.rest('Master', 'Worker')
    const app = join(team.folder, 'app')
    mkdirSync(app)
    const git = (...words: string[]) =>
      execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...words], {
        cwd: app,
        encoding: 'utf8',
      })
    git('init', '-q')
    git('commit', '-q', '--allow-empty', '-m', 'first')
    const commit = git('rev-parse', 'HEAD').trim()
    const clean = lastChecks(await checked('where'))
    expect(clean.findings).toMatchObject({ commit, dirty: false, checks: [{ output: `${app}\n` }] })
    writeFileSync(join(app, 'new'), 'x')
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Again', checks: ['where'] })
    await team.ends('Worker')
    await report()
    await team.until(async () => (await team.task('task_2')).endedAt !== null)
    const { evidence } = await team.task('task_2')
    expect(evidence.find(({ step }) => step === 'checks')).toMatchObject({
      findings: { commit, dirty: true },
      text: expect.stringContaining(`at commit ${commit}, not all committed`),
    })
  })

  it('gets the environment of an agent, without a token', async () => {
    process.env.ORC_TOKEN = 'orc_secret'
    process.env.MINE = 'kept'
    try {
      await openWith({ env: { command: 'env > seen' } })
      await checked('env')
    } finally {
      delete process.env.ORC_TOKEN
      delete process.env.MINE
    }
    const seen = readFileSync(join(team.folder, 'seen'), 'utf8').split('\n')
    expect(seen.filter((line) => line.startsWith('ORC_')).map((line) => line.split('=')[0])).toEqual([
      'ORC_SESSION',
    ])
    expect(seen).toContain('MINE=kept')
    expect(seen.some((line) => /^(?:VITEST|npm_|NODE_OPTIONS)/.test(line))).toBe(false)
  })

  it('keeps the beginning and the end of its output, without control characters', async () => {
    await openWith({
      loud: { command: `printf '\\033[31mfirst\\033[0m\\n'; yes é | head -c 200001; echo last; exit 1` },
    })
    const [result] = lastChecks(await checked('loud')).findings!.checks
    expect(result!.output.length).toBeLessThan(7000)
    expect(result!.output.startsWith('first\n')).toBe(true)
    expect(result!.output.endsWith('last\n')).toBe(true)
    expect(result!.output).toMatch(/\[… \d+ bytes left out …\]/)
    expect(result!.output).not.toContain('\ufffd')
  })

  it('that takes too long is ended with all its processes, even those that left its group', async () => {
    await openWith({ slow: { command: 'setsid sleep 61 & sleep 61', timeout: '1s' } })
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Do it', checks: ['slow'] })
    await report()
    // The timeout of the check starts when it runs.
    const task = await validated(500)
    expect(lastChecks(task)).toMatchObject({
      outcome: 'failed',
      text: expect.stringContaining('slow failed (not done after 1 s)'),
      findings: { checks: [{ exitCode: null }] },
    })
    expect(await ownChecks()).toEqual([])
  })

  it('leaves no process running when it ends or when the service ends', async () => {
    await openWith({ daemon: { command: 'sleep 62 & exit 0' }, long: { command: 'sleep 63' } })
    await checked('daemon')
    expect(await ownChecks()).toEqual([])
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Again', checks: ['long'] })
    await team.ends('Worker')
    await report()
    await team.until(async () => (await ownChecks()).length > 0)
    team = await team.restarted()
    await team.until(async () => (await ownChecks()).length > 0)
    await team.says('Master', 'task_action', { task_id: 'task_2', action: 'cancel' })
    await team.engine.close()
    expect(await ownChecks()).toEqual([])
    team = await team.restarted()
  })

  it('that cannot be run at all fails with the reason', async () => {
    team = await openTeam(
      { ...PAIR, Worker: { parent: 'Master', folder: 'nowhere' } },
      {
        tasks: { checks: { any: { command: 'true' } } },
      },
    )
    await team.rest('Master', 'Worker')
    expect(lastChecks(await checked('any'))).toMatchObject({
      outcome: 'failed',
      text: expect.stringContaining('it could not be run'),
    })
  })

  it('that throws is reported to the parent at once, with the reason', async () => {
    await openWith({ broken: { command: 'echo \0' } })
    const task = await checked('broken')
    expect(task).toMatchObject({ state: 'waiting_parent' })
    expect(lastChecks(task)).toMatchObject({
      outcome: 'unavailable',
      text: expect.stringMatching(/its checks could not be run: .*null bytes/),
    })
    expect(team.turn('Master')).toContain('it could not be validated')
  })

  it('waits while another check runs in the same folder', async () => {
    team = await openTeam(
      { Master: {}, A: { parent: 'Master' }, B: { parent: 'Master' } },
      { tasks: { checks: { alone: { command: 'mkdir lock && sleep 0.2 && rmdir lock' } } } },
    )
    await team.rest('Master', 'A', 'B')
    for (const to of ['A', 'B'])
      await team.says('Master', 'delegate', { to, task: 'Do it', checks: ['alone'] })
    await Promise.all(
      ['A', 'B'].map((name) => team.say(name, 'report', { status: 'completed', result: 'Done' })),
    )
    await team.until(async () => (await team.task('task_2')).endedAt !== null)
    expect(await team.task('task_1')).toMatchObject({ state: 'completed' })
    expect(await team.task('task_2')).toMatchObject({ state: 'completed' })
  })

  /** A's check runs until the file `go` exists; the claims of B are queued behind it. */
  async function openLine() {
    const wait = 'while [ ! -e go ]; do sleep 0.05; done'
    team = await openTeam(
      { Master: {}, A: { parent: 'Master' }, B: { parent: 'Master' }, C: { parent: 'Master' } },
      { tasks: { checks: { long: { command: wait, timeout: '10h' }, mark: { command: 'touch ran-$$' } } } },
    )
    await team.rest('Master', 'A', 'B', 'C')
    for (const [to, check] of Object.entries({ A: 'long', B: 'mark', C: 'mark' })) {
      await team.says('Master', 'delegate', { to, task: 'Do it', checks: [check] })
      await team.says(to, 'report', { status: 'completed', result: 'Done' })
    }
    await team.until(async () => (await ownChecks()).length > 0)
  }
  const goes = () => writeFileSync(join(team.folder, 'go'), '')
  const marks = () => readdirSync(team.folder).filter((name) => name.startsWith('ran-'))

  it('does not use up its timeout in the queue (C22)', async () => {
    await openLine()
    await team.clock.advance(2 * 3600_000)
    expect(await team.task('task_2')).toMatchObject({ state: 'executing', claim: { step: 'checks' } })
    goes()
    await team.until(async () => (await team.task('task_3')).endedAt !== null)
    expect(await team.task('task_2')).toMatchObject({ state: 'completed' })
    expect(marks()).toHaveLength(2)
  })

  it('is cancelled, or never started, when its task is cancelled', async () => {
    await openLine()
    await team.says('Master', 'task_action', { task_id: 'task_2', action: 'cancel' })
    await team.says('Master', 'task_action', { task_id: 'task_1', action: 'cancel' })
    await team.until(async () => (await team.task('task_3')).endedAt !== null)
    expect(await ownChecks()).toEqual([])
    expect(await team.task('task_3')).toMatchObject({ state: 'completed' })
    expect(marks()).toHaveLength(1)
  })
})

/** Processes of this test's team, found by the mark from its state folder. */
async function ownChecks() {
  const { hash } = await import('node:crypto')
  const prefix = `check-${hash('sha256', team.team().config.stateFolder).slice(0, 12)}-`
  return (await readProcesses()).filter(({ mark, isZombie }) => !isZombie && mark?.startsWith(prefix))
}
