import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parseConfig } from '../../../src/config/config.ts'
import { createTeamFolder, runOrc, type TeamFolder } from '../orc.ts'

let team: TeamFolder

beforeEach(() => {
  team = createTeamFolder()
})
afterEach(() => team.close())

const SCRIPTED = `
agents:
  Master: {}
  Player: { runtime: scripted, with: { script: [{ on: { text: hello }, say: hm }] } }
`

describe('orc init', () => {
  it('writes a valid file with a team of the installed programs', async () => {
    const bin = join(team.folder, 'bin')
    const fresh = join(team.folder, 'fresh')
    mkdirSync(bin)
    mkdirSync(fresh)
    for (const name of ['claude', 'gemini']) {
      writeFileSync(join(bin, name), '#!/bin/sh\n')
      chmodSync(join(bin, name), 0o755)
    }
    const ran = await runOrc(fresh, ['init'], { env: { PATH: bin } })
    expect(ran).toMatchObject({ code: 0, out: expect.stringContaining('Found Claude Code, Gemini CLI.') })
    expect(ran.err).toContain('tmux is missing')
    const loaded = parseConfig(readFileSync(join(fresh, 'orc.yaml')))
    expect(loaded).toMatchObject({
      ok: true,
      value: {
        warnings: [],
        config: {
          agents: [
            { name: 'Master', program: 'claude-code', runtime: 'tmux' },
            { name: 'Worker', program: 'gemini', parent: 'Master' },
          ],
        },
      },
    })
  })

  it('replaces a file only with --force, and can only print', async () => {
    const before = readFileSync(team.configFile, 'utf8')
    await team.fails('init', 1, '--force')
    expect((await team.orc('init --print')).out).toContain('agents:')
    expect(readFileSync(team.configFile, 'utf8')).toBe(before)
    expect((await team.orc('init --force')).code).toBe(0)
    expect(readFileSync(team.configFile, 'utf8')).not.toBe(before)
  })
})

describe('orc up', () => {
  it('--detach returns when the service answers; a second one says so; orc down ends it', async () => {
    const up = await team.orc('up --detach --port 0')
    expect(up).toMatchObject({ code: 0, out: expect.stringContaining('Started the service') })
    expect((await team.orc('up -d')).out).toContain('The service is already running.')
    expect((await team.orc('send-message --from Master --to Worker hi')).code).toBe(0)
    expect((await team.orc('down')).out).toContain('Stopped')
    expect((await team.orc('status')).code).toBe(5)
    expect((await team.orc('down')).out).toContain('not running')
  })

  it('reports mistakes in orc.yaml at once, and why a service did not start', async () => {
    writeFileSync(team.configFile, 'agents: { Master: { runtime: tmux } }')
    expect((await team.orc('up -d')).err).toContain('needs a program')
    writeFileSync(team.configFile, 'agents: { Master: {} }\nservice: { host: 203.0.113.7 }\n')
    const failed = await team.orc('up -d --port 1')
    expect(failed.code).not.toBe(0)
    expect(failed.err).toContain('did not start')
  })
})

describe('the verbs for one agent', () => {
  it('stop, spawn, reset, pause and resume it', async () => {
    writeFileSync(team.configFile, SCRIPTED)
    await team.start()
    const session = async () => {
      const [state] = (await team.orc('status --json')).json() as [{ agents: { session: string }[] }]
      return state.agents[1]!.session
    }
    await expect.poll(session).toBe('idle')
    expect((await team.orc('stop Player --reason done')).code).toBe(0)
    await expect.poll(session).toBe('exited')
    await team.fails('stop Player', 1, 'spawn')
    expect((await team.orc('spawn Player')).code).toBe(0)
    await expect.poll(session).toBe('idle')
    expect((await team.orc('pause player')).code).toBe(0)
    expect(await session()).toBe('paused')
    expect((await team.orc('resume Player')).code).toBe(0)
    expect((await team.orc('reset Player')).code).toBe(0)
    await expect.poll(session).toBe('idle')
    expect(await team.orc('spawn Nobody')).toMatchObject({ code: 7 })
    expect(await team.orc('spawn Master')).toMatchObject({ err: expect.stringContaining('runtime') })
  })

  it('show its terminal, or say that it has none', async () => {
    writeFileSync(team.configFile, SCRIPTED)
    await team.start()
    expect((await team.orc('logs Player')).code).toBe(0)
    await team.fails('logs Master', 1, 'not running')
    expect(await team.orc('attach Player')).toMatchObject({ err: expect.stringContaining('no terminal') })
    expect((await team.orc('logs Player -n many')).code).toBe(2)
  })
})
