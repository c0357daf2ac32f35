import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createCodex } from '../../src/programs/codex/program.ts'
import type { Session } from '../../src/runtimes/runtime.ts'
import { type ModelReply, type Player, playerOf } from '../fakes/model-server/play.ts'
import type { Asked, RecordingPort } from './harness/recording-port.ts'
import { openTestAgent, type TestAgent } from './harness/test-agent.ts'

const envelope = (id: string, content: string) =>
  `[ORCHUB MESSAGE ${id}]\nFrom: lead\nTitle: A task\nPriority: normal\n\n${content}\n\n[END ORCHUB MESSAGE ${id}]`

const COMMAND = '<orc-command name="send_message" to="lead">All is well.</orc-command>'
const ROLE = 'You are dev, of the crew of the Argo. "Quotes", \\ and $HOME stay.'

/** Outside of what its sandbox lets it write. */
const PATCH = `apply_patch <<'EOF'
*** Begin Patch
*** Add File: /usr/orchub-test.txt
+hello
*** End Patch
EOF`

/** Lets the model speak that is silent in `work a while`. */
let letGo: (reply: ModelReply) => void = () => {}
const held = () => new Promise<ModelReply>((resolve) => (letGo = resolve))

const rules = playerOf([
  { when: /say a command/, reply: { thinking: `Shall I? ${COMMAND}`, text: `I report.\n${COMMAND}` } },
  { when: /think for long/, reply: { text: 'Thought.', delayMs: 120_000 } },
  { when: /work a while/, reply: held },
  { when: /talk slowly/, reply: { text: 'word '.repeat(1000), chunkSize: 5, chunkMs: 50 } },
  { when: /sleep for long/, reply: { text: 'I sleep.', toolCalls: [{ shell: 'sleep 331' }] } },
  { when: /print it/, reply: { text: 'I print.', toolCalls: [{ shell: `echo '${COMMAND}'` }] } },
  {
    when: /run the tests/,
    reply: { text: 'I run them.', toolCalls: [{ shell: 'echo tests-pass', escalated: true }] },
  },
  {
    when: /patch the machine/,
    reply: { text: 'I patch it.', toolCalls: [{ shell: PATCH }] },
  },
  {
    when: /ask a helper/,
    times: 1,
    reply: { text: 'I ask.', toolCalls: [{ name: 'spawn_agent', input: { message: 'SUBTASK' } }] },
  },
  { when: /^SUBTASK$/, reply: { text: `The helper says ${COMMAND}` } },
  {
    when: /use the tool/,
    reply: { text: 'I call.', toolCalls: [{ mcp: 'send_message', input: { to: 'lead' } }] },
  },
  { toolResult: /queued for lead/, reply: { text: 'It is queued.' } },
  { when: /fail now/, times: 1, reply: { error: { status: 400, message: 'It is broken.' } } },
  { toolResult: /tests-pass/, reply: { text: 'They pass.' } },
  { toolResult: /rejected by user/, reply: { text: 'Then not.', delayMs: 300 } },
  { when: /not on a Friday/, reply: { text: 'Not on a Friday, then.' } },
])

/** Interrupted prompts and results of commands stay in the conversation: only the last counts. */
const play: Player = (request) =>
  rules(request.userText === '' ? request : { ...request, userText: request.prompt, toolResults: [] })

/** The state saved through the port. */
interface WithThreads {
  readonly program: { threads: { id: string; rollout?: string }[] }
}

describe('codex', () => {
  let testAgent: TestAgent
  let session: Session
  let port: RecordingPort
  let messages = 0
  const program = createCodex({
    log: { warn: (fields, text) => testAgent.problems.push({ text, ...fields }) },
  })

  beforeAll(async () => {
    testAgent = await openTestAgent({ agent: 'codex', program, play, role: ROLE })
    ;({ session, port } = await testAgent.start())
    await idle()
  })
  afterAll(async () => {
    await testAgent.close()
  })

  const idle = () => port.until(() => session.state === 'idle', 60_000)
  const busy = () => port.until(() => session.state === 'busy')
  const nextId = () => `msg_${++messages}`
  const spoken = () => port.said.map(({ text }) => text)
  const read = (id: string) =>
    port.until(() => port.arrived.find(({ ids, state }) => state === 'read' && ids.includes(id)))
  const met = new Set<Asked>()

  async function openQuestion(): Promise<Asked> {
    const question = await port.until(() => port.asked.find((one) => !one.isGone && !met.has(one)))
    met.add(question)
    return question
  }

  async function send(content: string) {
    await idle()
    const id = nextId()
    const arrival = await session.deliver({ text: envelope(id, content), ids: [id] })
    return { id, arrival }
  }

  const callWith = (text: string) =>
    testAgent.model.waitFor(({ request }) => request?.userText.includes(text) ?? false)

  it('reports that the agent got nothing before its first turn (C25)', async () => {
    expect(await session.locate(['msg_1'])).toMatchObject([{ at: 'absent' }])
  })

  it('delivers a message to the agent, and executes its command once (S1.2, C4, C25)', async () => {
    const { id, arrival } = await send('please say a command')
    expect(arrival.state).toBe('submitted')
    await read(id)
    await port.until(() => spoken().some((text) => text.includes(COMMAND)))
    await idle()
    expect(port.said).toEqual([
      { text: `I report.\n${COMMAND}`, channel: 'api', key: expect.stringMatching(/^codex:/) },
    ])
    await testAgent.shows(port, /ORCHUB MESSAGE/)
  })

  it('passes the role to the model word for word, and never writes the token to disk', async () => {
    expect(testAgent.model.calls('dev').at(-1)!.request!.system).toContain(ROLE)
    const script = await readFile(join(testAgent.folder, 'codex.sh'), 'utf8')
    expect(script).toContain('ORC_TOKEN')
    expect(script).not.toContain('orc_token_of_dev')
    expect(JSON.stringify(port.savedState)).not.toContain('orc_token_of_dev')
  })

  it('allows only the user to use the socket of the conversation', async () => {
    const { socket } = (port.savedState as { program: { socket: string } }).program
    expect((await stat(socket)).mode & 0o077).toBe(0)
  })

  it('reports the context usage, relative to the window of the model (C26)', async () => {
    await port.until(() => port.used.length > 0)
    expect(port.used[0]).toMatchObject({
      model: 'scripted',
      contextWindow: expect.any(Number),
      contextTokens: expect.any(Number),
      spent: { key: expect.stringMatching(/^codex:/) },
    })
  })

  it('exchanges ten messages, each read once and in order (C25)', async () => {
    const before = testAgent.model.calls('dev').length
    const ids: string[] = []
    for (let n = 0; n < 10; n++) {
      const { id, arrival } = await send(`number ${n}`)
      expect(arrival.state).toBe('submitted')
      ids.push(id)
      await read(id)
    }
    await idle()
    const prompts = testAgent.model.calls('dev').slice(before)
    expect(prompts.map(({ request }) => /number \d/.exec(request!.userText)?.[0])).toEqual(
      ids.map((_, n) => `number ${n}`),
    )
  })

  it.each([
    ['many lines', 'one\n\n  two\n\tthree'],
    ['100 KB', 'x'.repeat(100_000)],
    ['a leading !', '!touch hacked'],
    ['a leading /', '/quit'],
    ['a trailing backslash', 'ends with \\'],
    ['emoji and tabs', '👩‍👩‍👧‍👦\té\u0301 ｗｉｄｅ'],
    ['a file mention at the end', 'look at @x'],
    ['what looks like JSON and TOML', '{"id":1}\n[a]\nb = """'],
  ])('delivers %s unchanged', async (_name, content) => {
    const { id, arrival } = await send(content)
    expect(arrival.state).toBe('submitted')
    await read(id)
    const call = await callWith(`${id}]`)
    expect(call.request!.userText).toContain(envelope(id, content))
    expect(await session.locate([id])).toMatchObject([{ at: 'submitted' }])
  })

  it.each([
    ['the end of a bracketed paste', 'a\u001b[201~\rb', 'a[201~b'],
    ['half a surrogate pair and NUL', 'a\ud83d\u0000b', 'a\ufffdb'],
  ])('delivers %s without control characters', async (_name, content, carried) => {
    const { id, arrival } = await send(content)
    expect(arrival.state).toBe('submitted')
    await read(id)
    const call = await callWith(`${id}]`)
    expect(call.request!.userText).toContain(envelope(id, carried))
  })

  it('reports a message that it never got as absent', async () => {
    await idle()
    expect(await session.locate(['msg_999999'])).toMatchObject([{ at: 'absent' }])
  })

  it('leaves a draft in the input box untouched (field notes 4)', async () => {
    await idle()
    await testAgent.type(port, 'a half-typed thought')
    await testAgent.shows(port, /a half-typed thought/)
    const { id } = await send('hello there')
    await read(id)
    await idle()
    const call = await callWith(`${id}]`)
    expect(call.request!.userText).not.toContain('half-typed')
    await testAgent.shows(port, /› a half-typed thought/)
    // A person sends it after all: the agent is busy with it, and that is seen too.
    const before = port.states.length
    await testAgent.press(port, 'Enter')
    await callWith('a half-typed thought')
    await port.until(() => port.states.slice(before).some(({ state }) => state === 'busy'))
    await idle()
  })

  it('does not treat the output of a command as text of the agent (C4)', async () => {
    const before = port.said.length
    await send('print it')
    await port.until(() => port.said.length >= before + 2)
    await idle()
    expect(port.said.slice(before).some(({ text }) => text.includes(COMMAND))).toBe(false)
  })

  it('accepts no message while it is busy, and gets a notice within its turn (C2)', async () => {
    const { id: working } = await send('work a while')
    await callWith(`${working}]`)
    expect(await session.deliver({ text: envelope('msg_x', 'later'), ids: ['msg_x'] })).toMatchObject({
      state: 'queued',
    })
    await session.notice('[ORCHUB NOTICE] 1 message waits')
    letGo({ text: 'Worked.' })
    await callWith('ORCHUB NOTICE')
    expect(port.states.at(-1)!.state).toBe('busy')
    await idle()
  })

  it('stops a turn, with evidence; text that was cut off is not passed on (C2, C5)', async () => {
    const { id } = await send('think for long')
    await busy()
    expect(await session.interrupt()).toMatchObject({
      stopped: true,
      evidence: expect.stringContaining('interrupted'),
    })
    await idle()
    expect(port.arrived.filter(({ ids, state }) => ids.includes(id) && state === 'read')).toEqual([])

    await send('talk slowly')
    await testAgent.shows(port, /word word/)
    expect(await session.interrupt()).toMatchObject({ stopped: true })
    await sleep(500)
    expect(spoken().some((text) => text.includes('word word'))).toBe(false)
    expect(await session.interrupt()).toMatchObject({
      stopped: true,
      evidence: expect.stringContaining('idle'),
    })
  })

  it('also stops the command of the turn, which Codex would leave running (ask 11)', async () => {
    await send('sleep for long')
    await until(async () => (await commandsLike('sleep 331')).length > 0)
    expect(session.state).toBe('busy')
    expect(await session.interrupt()).toMatchObject({ stopped: true })
    await until(async () => (await commandsLike('sleep 331')).length === 0)
    await idle()
  })

  it('continues after a failed turn, which the agent has not read', async () => {
    const before = port.states.length
    const { id, arrival } = await send('fail now')
    expect(arrival.state).toBe('submitted')
    await port.until(() =>
      port.states.slice(before).some(({ evidence }) => evidence.includes('It is broken')),
    )
    await idle()
    expect(port.arrived.filter(({ ids, state }) => ids.includes(id) && state === 'read')).toEqual([])
    const { id: next } = await send('and again')
    await read(next)
    await idle()
  })

  it('asks for permission outside the pane, and accepts the verdict from there (ask 9)', async () => {
    await send('run the tests')
    const question = await openQuestion()
    expect(question).toMatchObject({
      tool: 'shell',
      input: { command: expect.stringContaining('echo tests-pass') },
    })
    await port.until(() => session.state === 'waiting_input')
    await testAgent.shows(port, /Would you like to run/)
    question.answer({ allow: true })
    await port.until(() => spoken().includes('They pass.'))
    await idle()
    expect(question.isGone).toBe(false)
  })

  it('reports a denial with its reason to the agent, which continues (C9)', async () => {
    await send('run the tests')
    const question = await openQuestion()
    question.answer({ allow: false, comment: 'not on a Friday' })
    await callWith('not on a Friday')
    await idle()
  })

  it('closes the request when the person answers in the pane', async () => {
    await send('run the tests')
    const question = await openQuestion()
    await testAgent.shows(port, /Would you like to run/)
    await testAgent.press(port, 'y')
    await port.until(() => question.isGone)
    await port.until(() => spoken().at(-1) === 'They pass.')
    await idle()
  })

  it('shows the person what a patch would change', async () => {
    await send('patch the machine')
    const question = await openQuestion()
    expect(question).toMatchObject({
      tool: 'apply_patch',
      input: { changes: [{ path: '/usr/orchub-test.txt', diff: 'hello\n' }] },
    })
    question.answer({ allow: false })
    await idle()
    expect(existsSync('/usr/orchub-test.txt')).toBe(false)
  })

  it('ignores the text of a subagent, and does not adopt its thread (C4)', async () => {
    const before = port.said.length
    await send('ask a helper')
    await testAgent.model.waitFor((one) => one.request?.userText === 'SUBTASK' && one.state === 'answered')
    await sleep(300)
    await idle()
    expect(port.said.slice(before).some(({ text }) => text.startsWith('The helper says'))).toBe(false)
    const { id } = await send('are you still you?')
    await read(id)
    expect((await callWith(`${id}]`)).body).toContain('half-typed')
    await idle()
  })

  it('leaves no dialog behind when a turn that asks is interrupted', async () => {
    await send('run the tests')
    const question = await openQuestion()
    await testAgent.shows(port, /Would you like to run/)
    expect(await session.interrupt()).toMatchObject({ stopped: true })
    await port.until(() => question.isGone)
    await testAgent.hides(port, /Would you like to run/)
    await idle()
  })

  it('continues in another conversation that a person opens in the pane', async () => {
    await testAgent.enter(port, '/new')
    await testAgent.hides(port, /ORCHUB MESSAGE/)
    await testAgent.enter(port, 'a new beginning')
    await callWith('a new beginning')
    await idle()
    const { id } = await send('and here too')
    await read(id)
    const call = await callWith(`${id}]`)
    expect(call.body).toContain('a new beginning')
    expect(call.body).not.toContain('half-typed')
    expect(call.request!.system).toContain(ROLE)
    expect(await session.locate(['msg_1'])).toMatchObject([{ at: 'submitted' }])
    await idle()
  })

  it('loses no text written while the service is down, and is found again (C25)', async () => {
    const { id } = await send('work a while')
    await callWith(`${id}]`)
    const before = port
    await session.leave()
    await testAgent.restartService()
    letGo({ text: 'Worked.' })
    const { rollout } = (before.savedState as WithThreads).program.threads.at(-1)!
    await until(async () => /"task_complete"[^\n]*"Worked\."/.test(await readFile(rollout!, 'utf8')))
    expect(before.said.at(-1)!.text).not.toBe('Worked.')
    ;({ session, port } = await testAgent.start(before.savedState))
    await port.until(() => spoken().includes('Worked.'))
    await read(id)
    await idle()
    expect(port.said).toHaveLength(1)
    const { arrival } = await send('and on')
    expect(arrival.state).toBe('submitted')
    await idle()
  })

  it.each([0, 1, 3, 10, 30, 100])(
    'knows what became of a message when the service is killed %i ms into its delivery (C25)',
    async (ms) => {
      await idle()
      const id = nextId()
      const turn = { text: envelope(id, 'a dangerous moment'), ids: [id] }
      const cut = session.deliver(turn)
      await sleep(ms)
      await session.leave()
      expect((await cut).state).not.toBe('read')
      await testAgent.restartService()
      ;({ session, port } = await testAgent.start(port.savedState))
      await idle()
      const at = (await session.locate([id]))[0]?.at
      expect(at).not.toBe('unknown')
      if (at === 'absent') await session.deliver(turn)
      await idle()
      const { id: last } = await send('and on')
      await idle()
      const told = (await callWith(`${last}]`)).body.split(`[ORCHUB MESSAGE ${id}]`).length - 1
      expect(told).toBe(1)
    },
  )

  it('is found in the middle of a turn, which can be stopped', async () => {
    const { id } = await send('think for long')
    await busy()
    const { savedState } = port
    await session.leave()
    await testAgent.restartService()
    ;({ session, port } = await testAgent.start(savedState))
    await busy()
    await port.until(() => port.arrived.some(({ ids, state }) => ids.includes(id) && state === 'submitted'))
    expect(await session.interrupt()).toMatchObject({ stopped: true })
    await idle()
  })

  it('finds an open dialog again after a restart of the service', async () => {
    await send('run the tests')
    await openQuestion()
    const { savedState } = port
    await session.leave()
    await testAgent.restartService()
    ;({ session, port } = await testAgent.start(savedState))
    const question = await openQuestion()
    await port.until(() => session.state === 'waiting_input')
    question.answer({ allow: true })
    await port.until(() => spoken().includes('They pass.'))
    await idle()
  })

  it('resumes its conversation after everything was killed, with its role (asks 10, 15)', async () => {
    const { id } = await send('remember the word xylophone')
    await read(id)
    await idle()
    const { savedState } = port
    await session.leave()
    await testAgent.restartService()
    await testAgent.killAll()
    ;({ session, port } = await testAgent.start(savedState))
    await idle()
    expect(port.said).toEqual([])
    const { id: next } = await send('which word was it?')
    await read(next)
    const call = await callWith(`${next}]`)
    expect(call.body).toContain('xylophone')
    expect(call.request!.system).toContain(ROLE)
    expect(await session.locate([id])).toMatchObject([{ at: 'submitted' }])
    await idle()
  })

  it('keeps the role when the context is compacted (ask 15)', async () => {
    const before = port.states.length
    await testAgent.enter(port, '/compact')
    await port.until(() => port.states.slice(before).some(({ state }) => state === 'busy'))
    await idle()
    const { id } = await send('still there?')
    await read(id)
    const call = await callWith(`${id}]`)
    expect(call.request!.system).toContain(ROLE)
    expect(call.body).not.toContain('half-typed')
    await idle()
  })

  it('ends the server of the conversation when a person quits in the middle of a turn', async () => {
    await send('sleep for long')
    await until(async () => (await commandsLike('sleep 331')).length > 0)
    const { savedState } = port
    // The first stops the turn, the second quits at the prompt.
    await testAgent.shows(port, /esc to interrupt/)
    await testAgent.press(port, 'C-c')
    await testAgent.hides(port, /esc to interrupt/)
    await testAgent.press(port, 'C-c')
    await port.until(() => session.state === 'exited')
    await until(async () => (await testAgent.left()).length === 0)
    ;({ session, port } = await testAgent.start(savedState))
    await idle()
  })

  it('ends when the server of the conversation is killed', async () => {
    const [server] = await commandsLike('app-server')
    process.kill(server!, 'SIGKILL')
    await port.until(() => session.state === 'exited')
    ;({ session, port } = await testAgent.start(port.savedState))
    await idle()
  })

  it('leaves nothing behind when it is stopped in the middle of a turn', async () => {
    await send('sleep for long')
    await until(async () => (await commandsLike('sleep 331')).length > 0)
    await session.stop()
    expect(session.state).toBe('exited')
    expect(await testAgent.left()).toEqual([])
  })

  it('reports a missing conversation that should be resumed', async () => {
    const wrong = '01a1ddf2-fe46-7dd3-b140-31f5ccc49999'
    const savedState = structuredClone(port.savedState) as WithThreads
    const [thread] = savedState.program.threads
    savedState.program.threads = [{ ...thread!, id: wrong }]
    const refusal = { code: 'NOT_FOUND', message: expect.stringContaining(wrong) }
    await expect(testAgent.start(savedState)).rejects.toMatchObject(refusal)
    savedState.program.threads = [{ ...thread!, id: wrong, rollout: `${thread!.rollout}.gone` }]
    await expect(testAgent.start(savedState)).rejects.toMatchObject(refusal)
  })

  it('sent no unknown message', () => {
    expect(testAgent.problems).toEqual([])
  })

  async function until(isSo: () => Promise<boolean>): Promise<void> {
    for (let n = 0; n < 600; n++) {
      if (await isSo()) return
      await sleep(100)
    }
    throw new Error(`It never was so: ${isSo}`)
  }

  /** Processes of this agent whose command line holds that. */
  async function commandsLike(text: string): Promise<number[]> {
    const found: number[] = []
    for (const pid of await testAgent.left()) {
      const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
      if (line.replaceAll('\0', ' ').includes(text) && !line.startsWith('/bin/sh')) found.push(pid)
    }
    return found
  }
})

describe('codex at its start', () => {
  const program = createCodex({ log: { warn() {} } })

  it.each([
    ['a configuration that it cannot read', { args: ['-c', 'sandbox_mode="nonsense"'] }, /nonsense/],
    ['an argument that it does not know', { args: ['--nonsense'] }, /nonsense/],
  ])('reports why it ended: %s', async (_name, settings, why) => {
    const testAgent = await openTestAgent({ agent: 'codex', program, play, role: ROLE, settings })
    try {
      await expect(testAgent.start()).rejects.toMatchObject({
        code: 'PROGRAM_FAILED',
        hint: expect.stringMatching(why),
      })
    } finally {
      await testAgent.close()
    }
  })

  it('follows its settings, trusts the folder if configured, and calls the tools of the team without asking', async () => {
    const team = await startTeam()
    const settings = { model: 'other', sandbox: 'read-only', approval_policy: 'never', trust_folder: true }
    const testAgent = await openTestAgent({
      agent: 'codex',
      program,
      play,
      role: ROLE,
      settings,
      url: team.url,
    })
    try {
      const config = join(testAgent.home.env.HOME!, '.codex', 'config.toml')
      await writeFile(config, (await readFile(config, 'utf8')).replace(/^\[projects[^[]*/m, ''))
      const { session, port } = await testAgent.start()
      await port.until(() => session.state === 'idle')
      await session.deliver({ text: envelope('msg_1', 'use the tool'), ids: ['msg_1'] })
      await port.until(() => port.said.some(({ text }) => text === 'It is queued.'))
      expect(port.asked).toEqual([])
      expect(team.tokens).toEqual(new Set(['Bearer orc_token_of_dev']))
      expect(testAgent.model.calls('dev')[0]!.request!.model).toBe('other')
      const { rollout } = (port.savedState as WithThreads).program.threads[0]!
      const records = await readFile(rollout!, 'utf8')
      expect(records).toContain('"approval_policy":"never"')
      expect(records).toContain('"sandbox_policy":{"type":"read-only"')
      expect(await readFile(config, 'utf8')).not.toContain('[projects')
      await session.stop()
      expect(await testAgent.left()).toEqual([])
    } finally {
      await testAgent.close()
      await team.close()
    }
  })
})

/** A service with one tool. */
async function startTeam() {
  const tokens = new Set<string | undefined>()
  const handle = toNodeHandler(
    createMcpHandler(() => {
      const server = new McpServer({ name: 'orc', version: '0' })
      const inputSchema = z.object({ to: z.string() })
      server.registerTool('send_message', { inputSchema }, async ({ to }) => ({
        content: [{ type: 'text', text: `queued for ${to}` }],
      }))
      return server
    }),
  )
  const server = createServer((request, response) => {
    tokens.add(request.headers.authorization)
    void handle(request as Parameters<typeof handle>[0], response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    tokens,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
