import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTeamFolder, ENTRY, runOrc, type TeamFolder } from './orc.ts'

let team: TeamFolder

beforeEach(() => {
  team = createTeamFolder()
})
afterEach(() => team.close())

describe('a folder without a team', () => {
  it('suggests orc init', async () => {
    const ran = await runOrc('/', ['status'])
    expect(ran).toMatchObject({ code: 7, err: expect.stringContaining('orc init writes one') })
  })

  it('is reported by orc service doctor once, not by every check', async () => {
    const ran = await runOrc('/', ['doctor'])
    expect(ran.code).toBe(1)
    expect(ran.out.match(/There is no orc\.yaml/g)).toHaveLength(1)
  })
})

describe('a broken orc.yaml', () => {
  it('is reported by orc service doctor once', async () => {
    writeFileSync(team.configFile, 'agents: { Master: { prgram: any } }')
    expect((await team.orc('doctor')).out.match(/prgram/g)).toHaveLength(1)
  })
})

describe('orc init --print --json', () => {
  it('prints JSON', async () => {
    expect((await team.orc('init --print --json')).json()).toEqual([
      { file: team.configFile, text: expect.stringContaining('agents:') },
    ])
  })
})

describe('the state folder', () => {
  it("is ignored by git, because it contains the operator's token", async () => {
    execFileSync('git', ['init', '-q', team.folder])
    await team.start()
    expect(existsSync(join(team.state, 'operator.token'))).toBe(true)
    const seen = execFileSync('git', ['-C', team.folder, 'status', '--porcelain', '-uall'], {
      encoding: 'utf8',
    })
    expect(seen).toBe('?? orc.yaml\n')
  })

  it('gets a .gitignore, unless the folder existed before', async () => {
    mkdirSync(team.state)
    writeFileSync(join(team.state, '.gitignore'), '*.db\n')
    const home = join(team.folder, 'home')
    mkdirSync(home)
    expect((await team.orc('token Master')).code).toBe(0)
    expect((await team.orc('token Master', { env: { ORC_HOME: home } })).code).toBe(0)
    expect(readFileSync(join(team.state, '.gitignore'), 'utf8')).toBe('*.db\n')
    expect(existsSync(join(home, 'operator.token')) || existsSync(join(home, 'orc.db'))).toBe(true)
    expect(existsSync(join(home, '.gitignore'))).toBe(false)
  })
})

describe('orc up --detach', () => {
  it('run twice in parallel starts one service, and both report it', async () => {
    writeFileSync(team.configFile, 'agents: { Master: {} }\nservice: { port: 0 }\n')
    const both = await Promise.all([team.orc('up -d'), team.orc('up -d')])
    expect(both.map(({ code, err }) => [code, err])).toEqual([
      [0, ''],
      [0, ''],
    ])
    const pids = both.map(({ out }) => /, process (\d+), since/.exec(out)?.[1])
    expect(pids[0]).toBeDefined()
    expect(pids[0]).toBe(pids[1])
    expect((await team.orc('down')).code).toBe(0)
  })

  it('says why an agent failed to start', async () => {
    const worker =
      '{ program: any, runtime: tmux, with: { command: [./no-such-program], patterns: { idle: x } } }'
    writeFileSync(team.configFile, `agents: { Worker: ${worker} }\nservice: { port: 0 }\n`)
    const up = await team.orc('up -d')
    await team.orc('down')
    expect(up.out).toMatch(/^ {2}Worker +error/m)
    expect(up.out).toMatch(/^ {2}Worker: .*no-such-program/m)
  })
})

describe('orc status', () => {
  it('shows the address of the service and which agents run outside', async () => {
    const { url } = await team.start()
    const { out } = await team.orc('status')
    expect(out).toContain(`at ${url}, process`)
    expect(out).toMatch(/Spy +unknown +0 waiting +runs outside/)
    const seen = await team.orc('status', { env: { ORC_TOKEN: await team.token('Spy') } })
    expect(seen.out).not.toContain('store')
    await team.orc('update-status --agent Spy --status idle')
    expect((await team.orc('status')).out).not.toMatch(/Spy.*runs outside/)
  })
})

describe('an answer to a question', () => {
  it('is confirmed in one line', async () => {
    await team.start()
    await team.orc(['ask-user', '--from', 'Worker', '--choices', 'red,blue', 'Which?'])
    expect(await team.orc('answer req_1 2')).toMatchObject({
      code: 0,
      out: 'req_1 is answered; Worker is notified\n',
    })
  })
})

describe('ORC_URL', () => {
  it('with an invalid address is refused by every verb, with an example', async () => {
    await team.fails('inbox', 2, '"foo" is not a service address', {
      env: { ORC_URL: 'foo', ORC_TOKEN: 'orc_x' },
    })
  })
})

describe('a noun without its verb', () => {
  it('suggests the verbs', async () => {
    expect((await team.orc('task task_7')).err).toContain('Did you mean task show?')
  })
})

describe('orc agent resume', () => {
  it('prints one line', async () => {
    await team.start()
    await team.orc('pause Worker')
    expect((await team.orc('resume Worker')).out).toBe('Worker is resumed\n')
  })
})

describe('orc audit', () => {
  it('says when no entry matches, so that a typo is visible', async () => {
    await team.start()
    expect(await team.orc('audit --type nope')).toMatchObject({
      code: 0,
      out: '',
      err: 'No entries match.\n',
    })
    expect((await team.orc('audit --agent Wroker')).err).toContain(
      'Wroker is not an agent in this team. Agents: Master',
    )
    expect(await team.orc('audit --type nope --json')).toMatchObject({ out: '', err: '' })
  })
})

describe('the log of the service', () => {
  it.runIf(existsSync('/dev/full'))('on a full disk does not end the service', async () => {
    const full = openSync('/dev/full', 'w')
    const service = spawn(process.execPath, [ENTRY, 'serve', '--port', '0'], {
      cwd: team.folder,
      stdio: ['ignore', 'pipe', full],
    })
    closeSync(full)
    const ended = once(service, 'exit')
    await once(service.stdout!, 'data')
    // The service logs that the file has mistakes.
    writeFileSync(team.configFile, 'agents: [')
    await expect
      .poll(async () => (await team.orc('status')).out, { timeout: 10_000 })
      .toContain('orc.yaml has mistakes')
    service.kill('SIGINT')
    expect(await ended).toEqual([0, null])
  })
})
