import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createLauncher, type LaunchOrder } from '../../src/engine/runs/launcher.ts'

interface OpenOptions {
  idleMs?: number
  plain?: boolean
  environment?: Record<string, string>
}

function open({ idleMs = 30_000, plain = false, environment = {} }: OpenOptions = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'orchub-launcher-'))
  const given = { PATH: process.env.PATH!, GIVEN: 'given', ...environment }
  const launcher = plain ? createLauncher(given, idleMs, null) : createLauncher(given, idleMs)
  onTestFinished(() => {
    launcher.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const logs: string[] = []
  function newLog(): string {
    logs.push(join(folder, `it's a log ${logs.length}`))
    return logs.at(-1)!
  }
  const orderOf = (script: string, more: Partial<LaunchOrder> = {}): LaunchOrder => ({
    ...{ script, cwd: folder, variables: { MARK: "a 'mark'" }, logFile: newLog() },
    ...more,
  })
  const log = () => logs.map((file) => (existsSync(file) ? readFileSync(file, 'utf8') : '')).join('')
  const launch = (script: string, more?: Partial<LaunchOrder>) => launcher.launch(orderOf(script, more))!
  const ready = (script: string, more?: Partial<LaunchOrder>) => launcher.ready(orderOf(script, more))!
  return { folder, launcher, launch, ready, log }
}

const ended = (code: number) => ({ code, signal: null, isKnown: true })
function isThere(group: number): boolean {
  try {
    return process.kill(-group, 0)
  } catch {
    return false
  }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

describe.each([{ plain: false }, { plain: true }])('with shells that are plain: $plain', (shell) => {
  it('carries out any script, with its variables, folder and log, and tells its exit code', async () => {
    const { folder, launch, log } = open(shell)
    const script = `echo "$GIVEN $MARK"\npwd\nprintf '%s\\n' 'a\\b  c'\n\nexit 7`
    const { pid, exited } = launch(script)
    expect(await pid).toBeGreaterThan(0)
    expect(await exited).toEqual(ended(7))
    expect(log()).toBe(`given a 'mark'\n${folder}\na\\b  c\n`)
  })

  it('gives each a process group of its own, and nothing to read', async () => {
    const { launch, log } = open(shell)
    const { pid, exited } = launch('read -r line || echo nothing; sleep 60')
    const group = (await pid)!
    expect(group).not.toBe(process.pid)
    expect(isThere(group)).toBe(true)
    await expect.poll(log).toBe('nothing\n')
    process.kill(-group, 'SIGTERM')
    expect(await exited).toEqual({ code: null, signal: 'SIGTERM', isKnown: true })
    await expect.poll(() => isThere(group)).toBe(false)
  })

  it('carries out as many at once as come, and one after the other', async () => {
    const { folder, launch } = open(shell)
    const count = 20
    // Each waits for all the others to have begun.
    const all = `: > $N; while [ "$(ls "${folder}" | grep -c '^n')" -lt ${count} ]; do sleep 0.05; done; exit $CODE`
    const launched = Array.from({ length: count }, (_, index) =>
      launch(all, { variables: { N: `n${index}`, CODE: String(index) } }),
    )
    const codes = await Promise.all(launched.map(({ exited }) => exited))
    expect(codes).toEqual(Array.from({ length: count }, (_, index) => ended(index)))
    for (let index = 0; index < count; index++) {
      expect(await launch(`exit ${index}`).exited).toEqual(ended(index))
    }
  })

  it('does not take one that is held still for one that has ended', async () => {
    const { folder, launch } = open(shell)
    const { pid, exited } = launch('while [ ! -e go ]; do sleep 0.02; done; exit 3')
    const group = (await pid)!
    process.kill(-group, 'SIGSTOP')
    writeFileSync(join(folder, 'go'), '')
    const first = await Promise.race([exited, pause(300)])
    expect(first).toBeUndefined()
    process.kill(-group, 'SIGCONT')
    expect(await exited).toEqual(ended(3))
  })

  it('tells of one that cannot begin', async () => {
    const { launch } = open(shell)
    const { pid, exited } = launch('exit 0', { cwd: '/nowhere' })
    expect(await exited).toEqual(ended(1))
    expect(await pid).toBeUndefined()
  })

  it.each([
    ['its own shell', 'exit 3'],
    ['a program in its place', 'exec sh -c "exit 3"'],
    ['a last deed of its own', 'trap "true" EXIT; exit 3'],
  ])(
    'does what is to be done at the end of one that ends with %s, whoever is there to be told',
    async (_, script) => {
      const { folder, launch, launcher } = open(shell)
      const noted = () => (existsSync(join(folder, 'end')) ? readFileSync(join(folder, 'end'), 'utf8') : '')
      const atEnd = `echo "it's $1 $2" >> '${join(folder, 'end')}'`
      const one = launch(script, { atEnd })
      expect(await one.exited).toEqual(ended(3))
      expect(noted()).toBe(`it's 3 ${await one.pid}\n`)
      const other = launch(`sleep 0.3; ${script}`, { atEnd })
      const all = `it's 3 ${await one.pid}\nit's 3 ${await other.pid}\n`
      launcher.close()
      await expect.poll(noted).toBe(all)
    },
  )

  it.each(['a file', 'a link', 'a pipe'])(
    'does not begin where %s is in the place of its log, and writes nothing there',
    async (what) => {
      const { folder, launch } = open(shell)
      const victim = join(folder, 'victim')
      writeFileSync(victim, 'as it was')
      const logFile = what === 'a file' ? victim : join(folder, 'other')
      if (what === 'a link') symlinkSync(victim, logFile)
      if (what === 'a pipe') execFileSync('mkfifo', [logFile])
      expect(await launch('echo printed', { logFile }).exited).toEqual(ended(1))
      expect(readFileSync(victim, 'utf8')).toBe('as it was')
    },
  )

  it('does nothing at the end of one that never began', async () => {
    const { folder, launch, ready } = open(shell)
    const atEnd = `echo ended >> '${join(folder, 'end')}'`
    ready('exit 0', { atEnd }).cancel()
    await launch('exit 0', { atEnd, cwd: '/nowhere' }).exited
    await launch('exit 0', { atEnd, logFile: '/nowhere/log' }).exited
    expect(await launch('sleep 0.1').exited).toEqual(ended(0))
    expect(existsSync(join(folder, 'end'))).toBe(false)
  })

  it('waits for the word to begin, and has begun nothing without it', async () => {
    const { folder, ready, launch } = open(shell)
    const one = ready('echo begun > begun; exit 8')
    // The shells take orders in turn, so that it has had its time.
    expect(await launch('sleep 0.2').exited).toEqual(ended(0))
    expect(existsSync(join(folder, 'begun'))).toBe(false)
    const launched = one.go()!
    expect(await launched.pid).toBeGreaterThan(0)
    expect(await launched.exited).toEqual(ended(8))
    expect(readFileSync(join(folder, 'begun'), 'utf8')).toBe('begun\n')
    expect(one.go()).toBeUndefined()
  })

  it('lets one go that is not needed any more, and takes the next order', async () => {
    const { folder, ready, launch } = open(shell)
    for (let times = 0; times < 10; times++) ready(`touch ${times}`).cancel()
    const codes = [3, 4, 5].map((code) => launch(`exit ${code}`).exited)
    expect(await Promise.all(codes)).toEqual([3, 4, 5].map(ended))
    expect(readdirSync(folder).filter((name) => /^\d$/.test(name))).toEqual([])
  })

  it('does not say that one begins whose shell is gone', async () => {
    const { folder, ready, launch } = open(shell)
    const one = ready('echo begun > begun', { cwd: '/nowhere' })
    await expect.poll(() => one.go()).toBeUndefined()
    // A word that nobody heard is not taken for an order.
    expect(await launch('exit 9').exited).toEqual(ended(9))
    expect(existsSync(join(folder, 'begun'))).toBe(false)
  })

  it('ends with its service those that still wait', async () => {
    const { folder, launcher, ready, log } = open(shell)
    ready('echo begun > begun; sleep 60')
    await expect.poll(log).toBe('')
    const running = () =>
      execFileSync('ps', ['-A', '-o', 'args='], { encoding: 'utf8' }).includes('begun > begun; sleep 60')
    await expect.poll(running).toBe(true)
    launcher.close()
    await expect.poll(running).toBe(false)
    expect(existsSync(join(folder, 'begun'))).toBe(false)
  })

  it('leaves the locale, and letters of any length, as they were', async () => {
    const { launch, log } = open({ ...shell, environment: { LC_ALL: 'C.UTF-8' } })
    await launch('echo "$LC_ALL é✓𝄞 $MARK"', { variables: { MARK: 'ü\n✓' } }).exited
    expect(log()).toBe('C.UTF-8 é✓𝄞 ü\n✓\n')
    // With a LANG, a shell would count letters where bytes are meant, unless it is told otherwise; its commands are not.
    const other = open({ ...shell, environment: { LANG: 'C.UTF-8' } })
    for (const script of ['echo "$LANG é✓𝄞 $MARK"', 'env | grep -c ^LC_ALL='])
      await other.launch(script, { variables: { MARK: '𝄞𝄞' } }).exited
    expect(other.log()).toBe('C.UTF-8 é✓𝄞 𝄞𝄞\n0\n')
  })
})

it('does not know how one ended whose shell was killed, and goes on with others', async () => {
  const { launch, log } = open()
  const { pid, exited } = launch('echo $PPID; exec sleep 60')
  const group = (await pid)!
  await expect.poll(log).toMatch(/^\d+\n$/)
  process.kill(Number(log()), 'SIGKILL')
  expect(await exited).toEqual({ code: null, signal: null, isKnown: false })
  process.kill(-group, 'SIGKILL')
  expect(await launch('exit 4').exited).toEqual(ended(4))
})

it('ends the shells that a crowd needed once they are idle, and keeps some', async () => {
  const { launch, log } = open({ idleMs: 50 })
  const many = Array.from({ length: 24 }, () => launch('echo $PPID; sleep 0.3'))
  await Promise.all(many.map(({ exited }) => exited))
  const shells = log().trim().split('\n').map(Number)
  expect(new Set(shells).size).toBe(24)
  const isRunning = (pid: number) => {
    try {
      return process.kill(pid, 0)
    } catch {
      return false
    }
  }
  await expect.poll(() => shells.filter(isRunning).length).toBe(8)
  expect(await launch('exit 5').exited).toEqual(ended(5))
})

it('says that it cannot where no descriptors are left, ends nobody, and can again later', () => {
  const launcher = new URL('../../src/engine/runs/launcher.ts', import.meta.url).href
  const script = `
    import { closeSync, openSync } from 'node:fs'
    import { createLauncher } from ${JSON.stringify(launcher)}
    const launcher = createLauncher({ PATH: process.env.PATH })
    const order = { script: 'exit 6', cwd: '/', variables: {}, logFile: process.argv[1] }
    const files = []
    try { for (;;) files.push(openSync('/dev/null', 'r')) } catch {}
    const first = launcher.launch(order)
    setTimeout(async () => {
      files.forEach((file) => closeSync(file))
      console.log(JSON.stringify([first === undefined, await launcher.launch(order).exited]))
      launcher.close()
    }, 100)`
  const limited = 'ulimit -n 100; exec "$0" --input-type=module -e "$1" "$2"'
  const log = join(open().folder, 'log')
  const said = execFileSync('/bin/sh', ['-c', limited, process.execPath, script, log], { encoding: 'utf8' })
  expect(JSON.parse(said)).toEqual([true, ended(6)])
})
