import { type SpawnOptions, spawn } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

// The real ./orc and scripts/setup.sh in a made-up clone. Stand-ins on PATH: npm (links the Node that runs
// this test where `npm ci` would put one), apt-get and id (nothing is installed on the machine).

const PROGRAMS = 'sh cat cmp cp grep ln mkdir mv readlink rm rmdir sleep touch'.split(' ')
const project = join(import.meta.dirname, '..')
let clone: string
let bin: string

function standIn(name: string, script: string) {
  writeFileSync(join(bin, name), `#!/bin/sh\necho "${name} $*" >>"${clone}/calls"\n${script}\n`)
  chmodSync(join(bin, name), 0o755)
}

const calls = (name: string) =>
  readFileSync(join(clone, 'calls'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith(`${name} `))

type Outcome = { pid: number | undefined; code: number | null; stdout: string; stderr: string }

function run(command: string, args: string[] = [], options: SpawnOptions = {}): Promise<Outcome> {
  const child = spawn(command, args, { cwd: clone, env: { ...process.env, PATH: bin }, ...options })
  let stdout = ''
  let stderr = ''
  child.stdout!.on('data', (chunk) => (stdout += chunk))
  child.stderr!.on('data', (chunk) => (stderr += chunk))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve({ pid: child.pid, code, stdout, stderr }))
  })
}

const orc = (...args: string[]) => run(join(clone, 'orc'), args)

beforeEach(() => {
  clone = join(mkdtempSync(join(tmpdir(), 'orchub-')), 'a clone')
  bin = join(clone, 'bin')
  mkdirSync(join(clone, 'src/cli'), { recursive: true })
  mkdirSync(bin)
  for (const file of ['orc', 'scripts/setup.sh']) cpSync(join(project, file), join(clone, file))
  writeFileSync(join(clone, 'package-lock.json'), '{}')
  writeFileSync(join(clone, 'calls'), '')
  writeFileSync(
    join(clone, 'src/cli/main.ts'),
    'const said: string[] = process.argv.slice(2)\nconsole.log(JSON.stringify({ pid: process.pid, said }))\n',
  )
  for (const program of PROGRAMS) {
    const places = process.env.PATH!.split(delimiter).map((place) => join(place, program))
    symlinkSync(places.find((place) => existsSync(place))!, join(bin, program))
  }
  standIn('git', '')
  standIn('tmux', '')
  standIn('id', 'echo 0')
  standIn(
    'npm',
    `sleep 0.3; rm -rf node_modules; mkdir -p node_modules/node/bin; ln -s "${process.execPath}" node_modules/node/bin/node`,
  )
})

afterEach(() => rmSync(join(clone, '..'), { recursive: true, force: true }))

describe('./orc in a clone', () => {
  it('sets itself up on first use, once, and keeps stdout for the program', async () => {
    const first = await orc('send-message', 'two words')
    expect(JSON.parse(first.stdout)).toMatchObject({ said: ['send-message', 'two words'] })
    expect(first.stderr).toContain('installing npm packages')

    const second = await orc()
    expect(second).toMatchObject({ code: 0, stderr: '' })
    expect(calls('npm')).toHaveLength(1)
  })

  it('replaces itself by the program, so that its process id is the program’s', async () => {
    const { pid, stdout } = await orc()
    expect(JSON.parse(stdout).pid).toBe(pid)
  })

  it('runs from any folder and through a symlink', async () => {
    symlinkSync(join(clone, 'orc'), join(bin, 'linked'))
    expect((await run(join(bin, 'linked'), ['x'], { cwd: '/' })).stdout).toContain('"x"')
    expect((await run('../orc', ['y'], { cwd: join(clone, 'src') })).stdout).toContain('"y"')
    expect((await run('sh', ['orc', 'z'])).stdout).toContain('"z"')
  })

  it('needs no other program once it is set up', async () => {
    await orc()
    rmSync(bin, { recursive: true })
    expect(await orc()).toMatchObject({ code: 0, stderr: '' })
  })

  it('installs again when the lockfile has changed, not when only its date has', async () => {
    await orc()
    writeFileSync(join(clone, 'package-lock.json'), '{}')
    await orc()
    expect(calls('npm')).toHaveLength(1)
    writeFileSync(join(clone, 'package-lock.json'), '{ "changed": true }')
    await orc()
    expect(calls('npm')).toHaveLength(2)
  })

  it('fails with what npm said and a hint, and tries again the next time', async () => {
    standIn('npm', 'echo "no route to host" >&2; exit 1')
    const failed = await orc()
    expect(failed).toMatchObject({ code: 1, stdout: '' })
    expect(failed.stderr).toMatch(/no route to host\n.*Is the npm registry reachable\?/)
    await orc()
    expect(calls('npm')).toHaveLength(2)
  })

  it('says so when npm has left out the runtime', async () => {
    standIn('npm', 'mkdir -p node_modules')
    expect(await orc()).toMatchObject({ code: 1, stderr: expect.stringContaining('ignore-scripts') })
  })
})

describe('two set-ups at once', () => {
  it('install once, and both go on', async () => {
    const outcomes = await Promise.all([orc('1'), orc('2'), orc('3')])
    expect(outcomes.map(({ code }) => code)).toEqual([0, 0, 0])
    expect(calls('npm')).toHaveLength(1)
  })

  it('are not held up by one that was killed', async () => {
    const dead = await run('sh', ['-c', ':'])
    mkdirSync(join(clone, '.cache'))
    symlinkSync(String(dead.pid), join(clone, '.cache/setup.lock'))
    const outcomes = await Promise.all([orc('1'), orc('2'), orc('3')])
    expect(outcomes.map(({ code }) => code)).toEqual([0, 0, 0])
    expect(calls('npm')).toHaveLength(1)
  })
})

describe('a missing OS program', () => {
  beforeEach(() => rmSync(join(bin, 'tmux')))

  it('is installed where the user is root, with fresh package lists only if needed', async () => {
    standIn('apt-get', '[ "$1" = update ] || [ "$(grep -c update calls)" = 1 ]')
    expect((await orc()).code).toBe(0)
    expect(calls('apt-get')).toEqual(['apt-get install -y tmux', 'apt-get update', 'apt-get install -y tmux'])
  })

  it('is named in one clear line where the user is not', async () => {
    standIn('id', 'echo 1000')
    standIn('apt-get', '')
    const { code, stderr } = await orc()
    expect(code).toBe(0)
    expect(stderr).toContain('please install tmux (Debian, Ubuntu: sudo apt-get install tmux;')
    expect(calls('apt-get')).toEqual([])
  })
})

describe('the lockfile', () => {
  it('names no registry host, so that any mirror will do', () => {
    const { packages } = JSON.parse(readFileSync(join(project, 'package-lock.json'), 'utf8'))
    // A workspace is a link to its own folder.
    const named = Object.keys(packages).filter(
      (name) => packages[name].resolved !== undefined && packages[name].link !== true,
    )
    expect(named).toEqual([])
  })
})
