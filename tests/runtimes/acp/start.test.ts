import { describe, expect, it } from 'vitest'
import { createAcpRuntime } from '../../../src/runtimes/acp/runtime.ts'
import { QUIET_LOG } from '../../fakes/quiet-log.ts'
import { start, startIdle, turn } from './harness.ts'

const runtime = createAcpRuntime({
  clock: { now: () => 0, after: () => () => {} },
  log: QUIET_LOG,
  bin: 'orc',
})

const COMPACTION = 'UPDATE {"sessionUpdate":"compaction_update","compactionId":"c","status":"completed"}'

describe('the settings of an ACP agent', () => {
  it('are all optional for a program that is known (S1.2)', () => {
    expect(runtime.check({ program: 'gemini', settings: undefined })).toEqual([])
    expect(runtime.check({ program: 'codex', settings: { model: 'm', mode: 'read-only' } })).toEqual([])
  })

  it('need a command for any other program, and say where it is missing', () => {
    expect(runtime.check({ program: 'any', settings: {} })).toMatchObject([{ path: ['command'] }])
    expect(runtime.check({ program: undefined, settings: { command: 'x' } })).toEqual([])
  })

  it('are refused with the path of what is wrong', () => {
    expect(runtime.check({ program: 'gemini', settings: { args: 'x' } })).toMatchObject([{ path: ['args'] }])
    expect(runtime.check({ program: 'gemini', settings: { comand: 'x' } })).toHaveLength(1)
    expect(runtime.check({ program: 'cursor', settings: {} })[0]?.hint).toContain('gemini')
  })
})

describe('starting an ACP agent', () => {
  it('gives it its own identity, and otherwise the environment of the service (C3)', async () => {
    const environment = {
      ...process.env,
      ORC_TOKEN: 'the operator',
      ORC_AGENT: 'someone',
      JAVA_HOME: '/opt/java',
      CLAUDECODE: '1',
    }
    const { fixture } = await startIdle({ environment })
    const [{ env }] = fixture.record<{ env: Record<string, string> }>('start') as [
      { env: Record<string, string> },
    ]
    expect(env).toMatchObject({
      ORC_URL: 'http://127.0.0.1:7420',
      ORC_TOKEN: 'orc_secret',
      ORC_AGENT: 'coder',
      ORC_BIN: '/opt/orc/bin/orc',
    })
    expect(env.ORC_SESSION).toMatch(/^[0-9a-f-]{36}$/)
    expect(env).toMatchObject({ JAVA_HOME: '/opt/java', TERM: 'dumb' })
    expect(env).not.toHaveProperty('CLAUDECODE')
  })

  it('keeps the token out of the command line', async () => {
    const { fixture } = await startIdle()
    expect(JSON.stringify(fixture.record<{ argv: string[] }>('start')[0]?.argv)).not.toContain('orc_secret')
  })

  it('offers our tools over HTTP, or over stdio if it has no HTTP', async () => {
    const over = async (...flags: string[]) => {
      const { fixture } = await startIdle({ flags })
      return fixture.record<{ mcpServers: unknown[] }>('new')[0]?.mcpServers
    }
    expect(await over()).toEqual([
      {
        type: 'http',
        name: 'orc',
        url: 'http://127.0.0.1:7420/mcp',
        headers: [{ name: 'Authorization', value: 'Bearer orc_secret' }],
      },
    ])
    expect(await over('--no-http')).toMatchObject([
      { name: 'orc', command: '/opt/orc/bin/orc', args: ['mcp'] },
    ])
  })

  it('is initializing until the session is open, then idle, with evidence', async () => {
    const started = await start()
    expect(started.session.state).toBe('initializing')
    expect(await started.reaches('idle')).toBe('fake 1.0: started conversation conversation-1')
    expect(started.states.map(({ state }) => state)).toEqual(['idle'])
  })

  it('sets the mode the settings name, and fails on one that is not offered', async () => {
    const { fixture } = await startIdle({ settings: { mode: 'plan' } })
    expect(fixture.record('mode')).toEqual(['plan'])
    const wrong = await start({ settings: { mode: 'warp' } })
    expect(await wrong.reaches('error')).toContain('it has no mode warp; it offers ask, plan')
  })

  it('fails for a program that is not installed, with instructions to install it', async () => {
    const settings = { command: 'no-such-program-anywhere' }
    await expect(start({ program: 'gemini', settings })).rejects.toMatchObject({
      code: 'PROGRAM_MISSING',
      hint: expect.stringContaining('npm install -g @google/gemini-cli'),
    })
    await expect(start({ settings: { command: './not/there' } })).rejects.toMatchObject({
      code: 'PROGRAM_MISSING',
    })
  })

  it('fails in a folder that does not exist', async () => {
    await expect(start({ cwd: '/no/such/folder' })).rejects.toMatchObject({ code: 'RUNTIME_FAILED' })
  })

  it('ends in an error that says why: a hang, another protocol version, a login', async () => {
    const why = async (flag: string, limits = {}) => {
      const { reaches, states } = await start({ flags: [flag], limits })
      await reaches('exited')
      expect(states.map(({ state }) => state)).toEqual(['error', 'exited'])
      return states[0]?.evidence
    }
    expect(await why('--hang', { answerMs: 300 })).toContain('no answer to initialize within 0.3 s')
    expect(await why('--version-9')).toContain('it speaks ACP version 9; Orchub needs 1')
    expect(await why('--login')).toMatch(/Authentication required.*Log in to it first/)
  })

  it('is exited, with exit code and error output, when the program ends at once', async () => {
    const { reaches } = await start({ flags: ['--exit-at-once'] })
    expect(await reaches('exited')).toBe('exited with code 3: no configuration found')
  })
})

describe('the role of an ACP agent', () => {
  it('is the first part of the first turn, in a frame, and not a turn of its own', async () => {
    const { session, fixture, until } = await startIdle()
    expect(fixture.record('prompt')).toEqual([])
    await session.deliver(turn('SAY one', 'msg_1'))
    await until(() => session.state === 'idle')
    await session.deliver(turn('SAY two', 'msg_2'))
    const [first, second] = fixture.record<string>('prompt')
    expect(first).toMatch(
      /^\[ORCHUB MESSAGE role\]\n[\s\S]*You write code\.[\s\S]*\[END ORCHUB MESSAGE role\]\n\n\[ORCHUB MESSAGE msg_1\]/,
    )
    expect(second).toMatch(/^\[ORCHUB MESSAGE msg_2\]/)
  })

  it('is a system prompt if the agent accepts one', async () => {
    const { session, fixture } = await startIdle({ flags: ['--system-prompt'] })
    expect(fixture.record('new')).toMatchObject([
      { systemPrompt: { mode: 'append', content: [{ type: 'text', text: 'You write code.' }] } },
    ])
    await session.deliver(turn('SAY one', 'msg_1'))
    expect(fixture.record<string>('prompt')[0]).toMatch(/^\[ORCHUB MESSAGE msg_1\]/)
  })

  it('is not repeated after a compaction if it is a system prompt', async () => {
    const { session, fixture, reaches } = await startIdle({ flags: ['--system-prompt'] })
    await session.deliver(turn(COMPACTION, 'msg_1'))
    await reaches('idle')
    await session.deliver(turn('SAY two', 'msg_2'))
    expect(fixture.record<string>('prompt')[1]).toMatch(/^\[ORCHUB MESSAGE msg_2\]/)
  })

  it('is repeated after a compaction', async () => {
    const { session, fixture, reaches } = await startIdle()
    await session.deliver(turn(COMPACTION, 'msg_1'))
    await reaches('idle')
    await session.deliver(turn('SAY two', 'msg_2'))
    expect(fixture.record<string>('prompt')[1]).toMatch(/^\[ORCHUB MESSAGE role\][\s\S]*was compacted/)
  })
})
