import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readConfig } from '../../../../src/config/config.ts'
import { createTeamFolder, ENTRY, type TeamFolder } from '../../orc.ts'

let team: TeamFolder
let sockets: string[]
let children: ChildProcess[]

beforeEach(() => {
  team = createTeamFolder()
  sockets = []
  children = []
})
afterEach(async () => {
  for (const child of children) child.kill('SIGKILL')
  for (const socket of sockets) spawnSync('tmux', ['-L', socket, 'kill-server'])
  await team.close()
})

const isServed = (socket: string) => spawnSync('tmux', ['-L', socket, 'list-sessions']).status === 0

async function startDemo() {
  const demo = team.begin('demo')
  children.push(demo.child)
  await demo.shows('Calculate')
  return { ...demo, socket: socketOf(demo.out()) }
}

function socketOf(out: string): string {
  const socket = /tmux -L (\S+) attach/.exec(out)![1]!
  sockets.push(socket)
  return socket
}

describe('orc demo', () => {
  it('stops with its team on a Ctrl-C that arrives twice, as under npm start', async () => {
    const { child, ended, socket } = await startDemo()
    expect(isServed(socket)).toBe(true)
    child.kill('SIGINT')
    await wait(50)
    child.kill('SIGINT')
    expect(await ended).toMatchObject({ code: 0, err: expect.stringContaining('again to exit at once') })
    expect(isServed(socket)).toBe(false)
  })

  it('starts again after it was killed, and ends with orc down', async () => {
    const killed = await startDemo()
    killed.child.kill('SIGKILL')
    await killed.ended
    expect(isServed(killed.socket)).toBe(true)
    const { ended, socket } = await startDemo()
    expect(socket).toBe(killed.socket)
    const down = await team.orc('down', { env: { ORC_HOME: join(team.state, 'demo') } })
    expect(down).toMatchObject({ code: 0, out: expect.stringContaining('Stopped') })
    expect(await ended).toMatchObject({ code: 0 })
    expect(isServed(socket)).toBe(false)
  })

  it('leaves a running demo alone', async () => {
    const { child, ended, socket } = await startDemo()
    await team.fails('demo', 1, 'STORE_LOCKED')
    expect(isServed(socket)).toBe(true)
    child.kill('SIGTERM')
    expect((await ended).code).toBe(0)
  })
})

/** Starts a team of one agent in its own terminal; returns the tmux socket. */
function writeTeam(agent = 'program: any, with: { command: [cat], patterns: { idle: "^$" } }'): string {
  writeFileSync(team.configFile, `agents: { Shell: { ${agent} } }`)
  const loaded = readConfig(team.configFile, {})
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.error))
  sockets.push(loaded.value.config.tmux.socket)
  return loaded.value.config.tmux.socket
}

const panesOf = (socket: string) =>
  spawnSync('tmux', ['-L', socket, 'list-panes', '-a', '-F', '#{@orc_agent} #{pane_pid}'], {
    encoding: 'utf8',
  })
    .stdout.split('\n')
    .filter((line) => line.startsWith('Shell '))

/** A zombie counts as ended. */
function isThere(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
  return stdout.trim() !== '' && !stdout.startsWith('Z')
}

describe('a closed terminal', () => {
  const UP = 'listens at'

  it('ends orc up cleanly, and the agents keep running until the next start', async () => {
    const socket = writeTeam()
    const { child, ended, shows } = team.begin('up --port 0')
    children.push(child)
    await shows(UP)
    const before = panesOf(socket)
    expect(before).toHaveLength(1)
    child.kill('SIGHUP')
    expect(await ended).toMatchObject({ code: 0 })
    expect(existsSync(join(team.state, 'service.json'))).toBe(false)
    expect(panesOf(socket)).toEqual(before)

    expect((await team.orc('up --detach --port 0')).code).toBe(0)
    expect(panesOf(socket)).toEqual(before)
    expect((await team.orc('down')).code).toBe(0)
    expect(panesOf(socket)).toEqual([])
  })

  const hasScript = spawnSync('script', ['--version']).status === 0
  it.runIf(hasScript)('does not disturb the service, although nothing can be written there', async () => {
    const socket = writeTeam()
    const command = `exec "${process.execPath}" "${ENTRY}" up --port 0 --log-level debug`
    const terminal = spawn('script', ['-qefc', command, '/dev/null'], { cwd: team.folder, stdio: 'pipe' })
    children.push(terminal)
    let shown = ''
    terminal.stdout.on('data', (data) => (shown += data))
    await expect.poll(() => shown, { timeout: 20_000 }).toContain(UP)
    const { pid } = JSON.parse(readFileSync(join(team.state, 'service.json'), 'utf8')) as { pid: number }
    terminal.kill('SIGKILL')
    await expect.poll(() => isThere(pid), { timeout: 15_000 }).toBe(false)
    expect(existsSync(join(team.state, 'service.json'))).toBe(false)
    expect(panesOf(socket)).toHaveLength(1)
    const entries = (await team.orc('audit --json')).json() as { type: string }[]
    expect(entries.map(({ type }) => type)).not.toContain('service.crashed')
  })
})

describe('a signal', () => {
  it('during the start stops everything that was started', async () => {
    const socket = writeTeam()
    const { child, ended } = team.begin('up --port 0')
    children.push(child)
    while (!existsSync(join(team.state, 'orc.db'))) await wait(2)
    child.kill('SIGTERM')
    expect(await ended).toMatchObject({ code: 0, out: '' })
    expect(isServed(socket)).toBe(false)
    expect((await team.orc('status')).code).toBe(5)
  })

  it.each(['SIGTERM', 'orc down'])(
    '(%s) calls off the start of an agent that hangs, and nothing is left',
    async (how) => {
      // Never answers at its port, so its start would take two minutes.
      const hanging = join(team.folder, 'hanging.sh')
      writeFileSync(hanging, '#!/bin/sh\nexec sleep 1000\n', { mode: 0o755 })
      const socket = writeTeam(`program: opencode, with: { command: ${hanging} }`)
      const { child, ended } = team.begin('up --port 0')
      children.push(child)
      await expect.poll(() => panesOf(socket).length, { timeout: 20_000 }).toBe(1)
      const pid = Number(panesOf(socket)[0]!.split(' ')[1])
      await expect.poll(() => isThere(pid), { timeout: 5000 }).toBe(true)
      const before = Date.now()
      if (how === 'SIGTERM') child.kill('SIGTERM')
      else expect((await team.orc('down')).code).toBe(0)
      expect(await ended).toMatchObject({ code: 0 })
      expect(Date.now() - before).toBeLessThan(15_000)
      expect(isThere(pid)).toBe(false)
      expect(isServed(socket)).toBe(false)
    },
  )

  it('that is repeated later exits at once', async () => {
    const module = join(import.meta.dirname, '../../../../src/cli/signals.ts')
    const stuck = `import(${JSON.stringify(module)}).then((m) => { m.watchStopSignal(); console.log('on'); setInterval(() => {}, 1000) })`
    const child = spawn(process.execPath, ['-e', stuck])
    children.push(child)
    const exited = once(child, 'exit')
    await once(child.stdout, 'data')
    child.kill('SIGINT')
    await once(child.stderr, 'data')
    child.kill('SIGINT')
    await wait(2100)
    expect(child.exitCode).toBe(null)
    child.kill('SIGINT')
    expect(await exited).toEqual([130, null])
  })
})
