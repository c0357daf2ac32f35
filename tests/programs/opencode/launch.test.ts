import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createOpencode } from '../../../src/programs/opencode/program.ts'

const program = createOpencode({ log: { warn() {} } })

describe('the launch of opencode', () => {
  let root: string

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'orc-opencode-'))
    await writeFile(join(root, 'opencode'), '#!/bin/sh\n')
    await chmod(join(root, 'opencode'), 0o755)
  })
  afterEach(() => rm(root, { recursive: true }))

  const launch = (settings: unknown, resume?: unknown) =>
    program.launch({
      ...{ name: 'dev', prompt: 'You are dev.', cwd: root, folder: join(root, 'agent'), nonce: 'n' },
      ...{ settings, url: 'http://127.0.0.1:7420', token: 'orc_secret', resume },
    })

  it('passes role and command server in addition to the configuration of the user', async () => {
    const { env } = await launch({ env: { PATH: root }, model: 'p/m', agent: 'plan' })
    const config = JSON.parse(env.OPENCODE_CONFIG_CONTENT!)
    expect(config).toEqual({
      instructions: [join(root, 'agent', 'opencode-role.md')],
      mcp: {
        orc: {
          type: 'remote',
          url: 'http://127.0.0.1:7420/mcp',
          headers: { Authorization: 'Bearer {env:ORC_TOKEN}' },
          oauth: false,
        },
      },
      model: 'p/m',
      default_agent: 'plan',
    })
    expect(await readFile(config.instructions[0], 'utf8')).toBe('You are dev.')
  })

  it('writes the token nowhere, and the password of its server only into a private file', async () => {
    const { argv, env, savedState } = await launch({ env: { PATH: root } })
    const folder = join(root, 'agent')
    const files = await Promise.all(
      (await readdir(folder)).map((name) => readFile(join(folder, name), 'utf8')),
    )
    expect(JSON.stringify([argv, savedState, env, files])).not.toContain('orc_secret')
    const password = await readFile(join(folder, 'opencode-password'), 'utf8')
    expect(password.length).toBeGreaterThan(30)
    expect(env.OPENCODE_SERVER_PASSWORD).toBe(password)
    expect(JSON.stringify([argv, savedState])).not.toContain(password)
    expect((await stat(join(folder, 'opencode-password'))).mode & 0o777).toBe(0o600)
  })

  it('resumes the last conversation, with another port and password', async () => {
    const first = await launch({ env: { PATH: root } })
    const savedState = {
      ...(first.savedState as object),
      conversations: [{ id: 'ses_1', since: 1 }],
      saidUpTo: 'msg_1',
    }
    const second = await launch({ env: { PATH: root }, args: ['--print-logs'] }, savedState)
    expect(second.argv).toEqual([
      join(root, 'opencode'),
      ...['--hostname', '127.0.0.1', '--port', String((second.savedState as { port: number }).port)],
      ...['--session', 'ses_1', '--print-logs'],
    ])
    expect(second.savedState).toMatchObject({ conversations: [{ id: 'ses_1', since: 1 }], saidUpTo: 'msg_1' })
    expect(second.env.OPENCODE_SERVER_PASSWORD).not.toBe(first.env.OPENCODE_SERVER_PASSWORD)
  })

  it('says how to install a missing program', async () => {
    await expect(launch({ env: { PATH: join(root, 'agent') } })).rejects.toMatchObject({
      code: 'PROGRAM_MISSING',
      hint: expect.stringContaining('npm install --global opencode-ai'),
    })
  })
})

describe('the settings of opencode', () => {
  it('may be omitted', () => {
    expect(program.check(undefined)).toEqual([])
  })

  it.each([
    [{ modle: 'x' }, []],
    [{ model: 'no-provider' }, ['model']],
    [{ args: 'x' }, ['args']],
    [{ env: { OPENCODE_CONFIG_CONTENT: '{}' } }, ['env', 'OPENCODE_CONFIG_CONTENT']],
    [{ env: { OPENCODE_SERVER_PASSWORD: 'mine' } }, ['env', 'OPENCODE_SERVER_PASSWORD']],
  ])('are refused with their path: %j', (settings, path) => {
    expect(program.check(settings)).toMatchObject([{ path, hint: expect.any(String) }])
  })
})
