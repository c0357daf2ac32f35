import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createCodex } from '../../../src/programs/codex/program.ts'
import type { ProgramLaunchOptions } from '../../../src/programs/program.ts'

/** Records its arguments; as a server it listens and, like Codex, finishes its turn at the first signal. */
const FAKE_CODEX = `#!${process.execPath}
const { appendFileSync } = require('node:fs')
const [kind] = process.argv.slice(2)
appendFileSync(process.env.CALLS, JSON.stringify({ pid: process.pid, args: process.argv.slice(2) }) + '\\n')
if (kind === 'app-server') {
  if (process.env.SERVER === 'fails') { console.error('Error: no such key'); process.exit(1) }
  let signals = 0
  for (const name of ['SIGHUP', 'SIGTERM']) process.on(name, () => { if (++signals > 1 && process.env.SERVER !== 'hangs') process.exit() })
  require('node:net').createServer().listen(process.argv[4].slice('unix://'.length))
} else if (process.env.TUI === 'ends') process.exit(7)
else setInterval(() => {}, 1000)
`

describe('the launch of codex', () => {
  let folder: string
  let calls: string
  const { launch: prepareLaunch } = createCodex({ log: { warn() {} } })

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'orc-launch-'))
    calls = join(folder, 'calls')
    await writeFile(join(folder, 'codex'), FAKE_CODEX)
    await chmod(join(folder, 'codex'), 0o755)
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))

  const order = (more: Partial<ProgramLaunchOptions> = {}): ProgramLaunchOptions => ({
    name: 'dev',
    prompt: 'You are dev.',
    cwd: '/home/me/it.s a project',
    folder: join(folder, 'agent'),
    nonce: 'n',
    url: 'http://127.0.0.1:7420',
    token: 'orc_secret',
    resume: undefined,
    ...more,
    settings: { command: join(folder, 'codex'), ...(more.settings as object) },
  })

  async function run(env: Record<string, string>, more?: Partial<ProgramLaunchOptions>) {
    const { argv } = await prepareLaunch(order(more))
    const child = spawn(argv[0]!, argv.slice(1), {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env.PATH, CALLS: calls, ...env },
    })
    let output = ''
    child.stdout.on('data', (chunk) => {
      output += chunk
    })
    const exit = once(child, 'exit').then(([code, signal]) => ({ code, signal }))
    return { child, exit, output: () => output }
  }

  async function called(count: number): Promise<{ pid: number; args: string[] }[]> {
    for (;;) {
      const lines = existsSync(calls) ? (await readFile(calls, 'utf8')).trim().split('\n') : []
      if (lines.length >= count) return lines.map((line) => JSON.parse(line))
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }

  function isAlive(pid: number): boolean {
    try {
      process.kill(pid, 0)
      return true
    } catch {
      return false
    }
  }

  it('passes the role and the team to the server, and the user settings to the pane', async () => {
    const settings = {
      args: ['-c', 'a=1', '--search', '--enable=b'],
      model: 'gpt-6',
      sandbox: 'read-only',
      approval_policy: 'never',
      trust_folder: true,
    }
    const { exit } = await run({ TUI: 'ends' }, { settings, prompt: 'You\'re "dev"\n$HOME `id` \\' })
    const [server, tui] = await called(2)
    const socket = `unix://${join(folder, 'agent', 'codex.sock')}`
    const config = [
      'developer_instructions="You\'re \\"dev\\"\\n$HOME `id` \\\\"',
      'mcp_servers.orc.url="http://127.0.0.1:7420/mcp"',
      'mcp_servers.orc.bearer_token_env_var="ORC_TOKEN"',
      'mcp_servers.orc.default_tools_approval_mode="approve"',
      'projects={"/home/me/it.s a project"={trust_level="trusted"}}',
    ]
    expect(server!.args).toEqual([
      ...['app-server', '--listen', socket, '-c', 'a=1', '--enable=b'],
      ...config.flatMap((one) => ['-c', one]),
    ])
    expect(tui!.args).toEqual([
      ...['--remote', socket, '--cd', '/home/me/it.s a project'],
      ...['--model', 'gpt-6', '--sandbox', 'read-only', '--ask-for-approval', 'never'],
      ...settings.args,
    ])
    expect(await exit).toMatchObject({ code: 7 })
  })

  it('writes no token to disk, and its files are private to the user', async () => {
    const launch = await prepareLaunch(order())
    const script = launch.argv[1]!
    expect(await readFile(script, 'utf8')).not.toContain('orc_secret')
    expect(JSON.stringify(launch)).not.toContain('orc_secret')
    expect((await stat(script)).mode & 0o077).toBe(0)
    expect((await stat(join(folder, 'agent'))).mode & 0o077).toBe(0)
    expect(launch.env).toEqual({})
  })

  it('passes every prompt through shell and TOML unchanged', async () => {
    const texts = fc.array(fc.string({ unit: 'binary', maxLength: 30 }), { minLength: 1, maxLength: 30 })
    await fc.assert(
      fc.asyncProperty(texts, async (pieces) => {
        await rm(calls, { force: true })
        // An argument cannot hold NUL, and half a character is none.
        const prompt = pieces.join('\'$"').replaceAll('\0', '').toWellFormed()
        const { exit } = await run({ TUI: 'ends' }, { prompt })
        await exit
        const value = (await called(2))[0]!.args.find((one) => one.startsWith('developer_instructions='))!
        expect(JSON.parse(value.slice('developer_instructions='.length))).toBe(prompt)
        // TOML allows no bare control characters.
        expect(value).not.toMatch(/[\u0000-\u001F\u007F]/)
      }),
      { numRuns: 2 },
    )
  })

  it('ends the server with the pane, even one that wants to finish its turn first', async () => {
    const { child, exit } = await run({})
    const [server, tui] = await called(2)
    process.kill(tui!.pid, 'SIGKILL')
    expect(await exit).toMatchObject({ code: 137 })
    expect(isAlive(server!.pid)).toBe(false)
    expect(isAlive(child.pid!)).toBe(false)
  })

  it('ends a server that ignores signals', async () => {
    const { exit } = await run({ SERVER: 'hangs', TUI: 'ends' })
    const [server] = await called(2)
    await exit
    await expect.poll(() => isAlive(server!.pid), { timeout: 10_000 }).toBe(false)
  })

  it('ends the pane with the server', async () => {
    const { exit } = await run({})
    const [server, tui] = await called(2)
    process.kill(server!.pid, 'SIGKILL')
    await exit
    expect(isAlive(tui!.pid)).toBe(false)
  })

  it('ends both when the terminal hangs up', async () => {
    const { child, exit } = await run({})
    const [server, tui] = await called(2)
    process.kill(-child.pid!, 'SIGHUP')
    await exit
    expect([server, tui].map((one) => isAlive(one!.pid))).toEqual([false, false])
  })

  it('shows why the server does not start', async () => {
    const { exit, output } = await run({ SERVER: 'fails' })
    expect(await exit).toMatchObject({ code: 1 })
    expect(output()).toContain('Error: no such key')
  })

  it('resumes the last conversation, and reports one that no longer exists', async () => {
    const rollout = join(folder, 'sessions', 'rollout-1.jsonl')
    const resume = {
      socket: '/old',
      launchedAt: 1,
      threads: [{ id: 't1', since: 1, rollout }],
      saidUpTo: 'x/y',
    }
    await expect(prepareLaunch(order({ resume }))).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: expect.stringContaining('t1'),
      hint: expect.stringContaining('Reset'),
    })
    const savedState = { ...resume, threads: [{ id: 't1', since: 1 }] }
    const launch = await prepareLaunch(order({ resume: savedState }))
    expect(await readFile(launch.argv[1]!, 'utf8')).toContain("'resume' 't1' '--remote'")
    expect(launch.savedState).toEqual({
      ...savedState,
      socket: join(folder, 'agent', 'codex.sock'),
      launchedAt: expect.any(Number),
    })
  })

  it('says how to install a missing program', async () => {
    await expect(
      prepareLaunch(order({ settings: { command: 'codex', env: { PATH: '' } } })),
    ).rejects.toMatchObject({ code: 'PROGRAM_MISSING', hint: expect.stringContaining('npm install') })
  })
})
