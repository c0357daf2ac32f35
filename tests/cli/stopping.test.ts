import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { createTeamFolder, type TeamFolder } from './orc.ts'

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
  it('ends with its team by a Ctrl-C that comes twice, as under npm start', async () => {
    const { child, ended, socket } = await startDemo()
    expect(isServed(socket)).toBe(true)
    child.kill('SIGINT')
    await wait(50)
    child.kill('SIGINT')
    expect(await ended).toMatchObject({ code: 0, err: expect.stringContaining('again to leave at once') })
    expect(isServed(socket)).toBe(false)
  })

  it('begins anew after it was killed, and ends by orc down', async () => {
    const killed = await startDemo()
    killed.child.kill('SIGKILL')
    await killed.ended
    expect(isServed(killed.socket)).toBe(true)
    const { ended, socket } = await startDemo()
    expect(socket).toBe(killed.socket)
    const down = await team.orc('down', { env: { ORC_HOME: join(team.state, 'demo') } })
    expect(down).toMatchObject({ code: 0, out: expect.stringContaining('stopped') })
    expect(await ended).toMatchObject({ code: 0 })
    expect(isServed(socket)).toBe(false)
  })

  it('leaves the one that runs here alone', async () => {
    const { child, ended, socket } = await startDemo()
    expect(await team.orc('demo')).toMatchObject({ code: 1, err: expect.stringContaining('STORE_LOCKED') })
    expect(isServed(socket)).toBe(true)
    child.kill('SIGTERM')
    expect((await ended).code).toBe(0)
  })
})

describe('a signal', () => {
  it('that comes while the team starts ends what was started', async () => {
    writeFileSync(
      team.configFile,
      'agents: { Shell: { program: any, with: { command: [cat], patterns: { idle: "^$" } } } }',
    )
    const loaded = readConfig(team.configFile, {})
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems))
    sockets.push(loaded.config.tmux.socket)
    const { child, ended } = team.begin('up --port 0')
    children.push(child)
    while (!existsSync(join(team.state, 'orc.db'))) await wait(2)
    child.kill('SIGTERM')
    expect(await ended).toMatchObject({ code: 0, out: '' })
    expect(isServed(loaded.config.tmux.socket)).toBe(false)
    expect((await team.orc('status')).code).toBe(5)
  })

  it('that is given again in earnest ends the program at once', async () => {
    const module = join(import.meta.dirname, '..', '..', 'src', 'cli', 'stop-signal.ts')
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
