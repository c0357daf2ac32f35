import { mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { AgentName } from '../../scripts/install-agents.ts'
import { createAcpRuntime } from '../../src/runtimes/acp/runtime.ts'
import type { Session, Turn } from '../../src/runtimes/runtime.ts'
import { type ModelServer, startModelServer } from '../fakes/model-server/model-server.ts'
import type { ModelReply, Rule } from '../fakes/model-server/play.ts'
import { QUIET_LOG } from '../fakes/quiet-log.ts'
import { REAL_CLOCK } from '../fakes/real-clock.ts'
import { createRecordingPort, type RecordingPort } from '../fakes/recording-port.ts'
import { type Home, prepareHome } from './harness/home.ts'
import { type HookServer, startHookServer } from './harness/hook-server.ts'
import { endProcessesOf, processesOf } from './harness/leftovers.ts'
import { COMMAND } from './harness/test-agent.ts'

const ROLE = 'You are the scribe of the team.'

/** The model works until a test resolves this. */
let work = Promise.withResolvers<ModelReply>()

const PLAY: Rule[] = [
  { when: /say a command/, reply: { text: `I report.\n${COMMAND}`, chunkSize: 7 } },
  // Once: what was interrupted is still there in the next request.
  { when: /think for long/, times: 1, reply: () => new Promise<never>(() => {}) },
  { when: /work a while/, times: 1, reply: () => work.promise },
  { when: /run it/, reply: { text: 'I run it.', toolCalls: [{ shell: 'touch ran-it', escalated: true }] } },
  {
    when: /tell dev-2/,
    reply: { toolCalls: [{ mcp: 'send_message', input: { to: 'dev-2', body: 'hello' } }] },
  },
  { toolResult: /queued for dev-2/, reply: { text: 'Told.' } },
  { toolResult: /./, reply: { text: 'That was that.' } },
]

function message(id: string, content: string): Turn {
  return { ids: [id], text: `[ORCHUB MESSAGE ${id}]\nFrom: lead\n\n${content}\n\n[END ORCHUB MESSAGE ${id}]` }
}

async function commandLinesOf(folder: string | undefined): Promise<string> {
  const pids = await processesOf(folder)
  expect(pids).not.toEqual([])
  const lines = pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''))
  return (await Promise.all(lines)).join('\n')
}

interface Trait {
  readonly agent: AgentName
  readonly program: string
  /** Shows its role by a system prompt, or in its first turn. */
  readonly role: 'system' | 'prompt'
  readonly steers?: true
  /** How `@x` arrives, so that the program reads no file of that name. */
  readonly mention?: string
}

const PROGRAMS: Trait[] = [
  { agent: 'gemini', program: 'gemini', role: 'prompt' },
  { agent: 'opencode', program: 'opencode', role: 'prompt' },
  { agent: 'codex-acp', program: 'codex', role: 'system', steers: true },
  { agent: 'claude-agent-acp', program: 'claude-code', role: 'system', mention: '\\@x' },
]

describe.each(PROGRAMS)('$agent over ACP (issue 3)', ({ agent, program, role, steers, mention = '@x' }) => {
  let root: string
  let model: ModelServer
  let service: HookServer
  let home: Home
  let running: Session[]

  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), `orc-acp-${agent}-`)))
    model = await startModelServer({ play: PLAY })
    service = await startHookServer()
    const folders = { folder: join(root, 'home'), cwd: join(root, 'work') }
    home = await prepareHome(agent, { ...folders, modelUrl: model.url, key: 'sk-ant-fake-scribe' })
    running = []
  })

  afterEach(async () => {
    await Promise.all(running.map((session) => session.stop()))
    const left = await processesOf(home.env.HOME)
    await endProcessesOf(home.env.HOME)
    await Promise.all([model.close(), service.close()])
    await rm(root, { recursive: true, force: true, maxRetries: 5 })
    expect(left).toEqual([])
  })

  async function start(savedState?: unknown): Promise<{ session: Session; port: RecordingPort }> {
    const runtime = createAcpRuntime({
      ...{ clock: REAL_CLOCK, log: QUIET_LOG, bin: 'orc' },
      // All that it needs is in the settings of its home.
      environment: {},
    })
    const port = createRecordingPort({}, 90_000)
    const session = await runtime.start(
      {
        ...{ name: 'scribe', program, settings: home.settings, prompt: ROLE, savedState, nonce: 'n' },
        ...{ cwd: join(root, 'work'), folder: join(root, 'private') },
        credentials: async () => ({ url: service.url, token: 'orc_token' }),
      },
      port,
    )
    running.push(session)
    await idle(session, port)
    return { session, port }
  }

  const idle = (session: Session, port: RecordingPort) => port.until(() => session.state === 'idle', 90_000)

  it('accepts messages, answers with its own text, and keeps its role', async () => {
    const { session, port } = await start()
    const arrival = await session.deliver(message('msg_1', 'Please say a command now.'))
    expect(arrival.state).toBe('read')
    await idle(session, port)
    expect(port.text().trim()).toBe(`I report.\n${COMMAND}`)
    const [call] = model.calls()
    expect(call?.request?.userText).toContain('[ORCHUB MESSAGE msg_1]')
    expect(role === 'system' ? call?.body : call?.request?.userText).toContain(ROLE)
    if (role === 'system') expect(call?.request?.userText).not.toContain(ROLE)
    expect((await session.locate(['msg_1']))[0]?.at).toBe('submitted')
    expect(port.used.some(({ spent }) => (spent?.input ?? 0) > 0)).toBe(true)
  })

  it('delivers a text of 100 KB with all special characters', async () => {
    const { session, port } = await start()
    const text = `!ls\n/quit\n\tcolumn @x 👩‍🚀 \u001B[201~ $HOME \`date\`\n${'Zeile mit Umlaut ü. '.repeat(5000)}\\`
    await session.deliver(message('msg_1', text))
    await idle(session, port)
    expect(model.calls()[0]?.request?.userText).toContain(text.replace('@x', mention))
  })

  it('reads no file because a message names it', async () => {
    const outside = join(root, 'outside.txt')
    await writeFile(join(root, 'work', 'inside.txt'), 'the secret inside')
    await writeFile(outside, 'the secret outside')
    const { session, port } = await start()
    await session.deliver(
      message('msg_1', `look at @inside.txt, 。@inside.txt, @"inside.txt" and @${outside} now`),
    )
    await idle(session, port)
    expect(model.calls().length).toBeGreaterThan(0)
    for (const { body } of model.calls()) expect(body).not.toContain('the secret')
  })

  it('calls the tools it was given over MCP', async () => {
    const { session, port } = await start()
    await session.deliver(message('msg_1', 'Please tell dev-2.'))
    await port.until(
      () => port.asked.length > 0 || service.messages.length > 0 || session.state === 'idle',
      60_000,
    )
    port.asked[0]?.answer({ allow: true })
    await idle(session, port)
    expect(service.messages).toEqual([{ to: 'dev-2', body: 'hello', authorization: 'Bearer orc_token' }])
    expect(port.text().trim()).toBe('Told.')
    expect([...service.tokens]).toEqual(['Bearer orc_token'])
    expect(await commandLinesOf(home.env.HOME)).not.toContain('orc_token')
  })

  it('asks a person before it runs a command, and follows the verdict', async () => {
    const { session, port } = await start()
    await session.deliver(message('msg_1', 'Please run it.'))
    const asked = await port.until(() => port.asked[0], 60_000)
    expect(session.state).toBe('waiting_input')
    expect(JSON.stringify(asked)).toContain('touch ran-it')
    asked.answer({ allow: false })
    await idle(session, port)
    await expect(realpath(join(root, 'work', 'ran-it'))).rejects.toThrow('ENOENT')
  })

  it('is interrupted, with evidence, and accepts the next turn', async () => {
    const { session, port } = await start()
    const delivering = session.deliver(message('msg_1', 'Please think for long.'))
    await model.waitFor((call) => call.request?.userText.includes('think for long') === true)
    const { stopped, evidence } = await session.interrupt()
    expect({ stopped, evidence }).toMatchObject({ stopped: true })
    await delivering
    await idle(session, port)
    expect((await session.deliver(message('msg_2', 'Please say a command now.'))).state).toBe('read')
    await idle(session, port)
    expect(port.text()).toContain(COMMAND)
  })

  it('gets a notice at once if it can, otherwise with its next turn (C2)', async () => {
    const { session, port } = await start()
    work = Promise.withResolvers()
    const delivering = session.deliver(message('msg_1', 'Please work a while.'))
    await model.waitFor((call) => call.request?.userText.includes('work a while') === true)
    await session.notice('NOTICE: mail waits.')
    work.resolve({ text: 'Worked.' })
    await delivering
    await idle(session, port)
    expect(model.calls().some((call) => call.body.includes('NOTICE: mail waits.'))).toBe(steers === true)
    await session.deliver(message('msg_2', 'Please say a command now.'))
    await idle(session, port)
    expect(model.calls().at(-1)?.body.split('NOTICE: mail waits.')).toHaveLength(2)
  })

  it('resumes its conversation after everything was killed, and repeats no text (C25)', async () => {
    const { session, port } = await start()
    await session.deliver(message('msg_1', 'Please say a command now.'))
    await idle(session, port)
    await endProcessesOf(home.env.HOME)
    await port.until(() => session.state === 'exited')
    const again = await start(port.savedState)
    expect(again.port.states.at(-1)?.evidence).toContain('resumed conversation')
    expect((await again.session.locate(['msg_1']))[0]?.at).toBe('submitted')
    expect((await again.session.locate(['msg_2']))[0]?.at).toBe('absent')
    await again.session.deliver(message('msg_2', 'And now this.'))
    await idle(again.session, again.port)
    expect(again.port.text()).toMatch(/^Understood, that was number \d+\.$/)
    const last = model.calls().at(-1)
    expect(last?.body).toContain('[ORCHUB MESSAGE msg_1]')
    expect(last?.body).toContain(ROLE)
  })
})
