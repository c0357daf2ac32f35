import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { MAX_HOOK_RESPONSE_BYTES } from '../../src/programs/claude-code/deliver.ts'
import { createClaudeCode } from '../../src/programs/claude-code/program.ts'
import type { Session } from '../../src/runtimes/runtime.ts'
import { type ModelReply, type Player, playerOf } from '../fakes/model-server/play.ts'
import { type HookServer, type Noted, startHookServer } from './harness/hook-server.ts'
import type { Asked, RecordingPort } from './harness/recording-port.ts'
import { openTestAgent, type TestAgent } from './harness/test-agent.ts'

const envelope = (id: string, content: string) =>
  `[ORCHUB MESSAGE ${id}]\nFrom: lead\nTitle: A task\nPriority: normal\n\n${content}\n\n[END ORCHUB MESSAGE ${id}]`

const COMMAND = '<orc-command name="send_message" to="lead">All is well.</orc-command>'
const ROLE = 'You are dev, of the crew of the Argo. "Quotes", \\ and $HOME stay.'
const ORC = join(import.meta.dirname, '../../orc')

/** Lets the model speak that is silent in `work a while`. */
let letGo: (reply: ModelReply) => void = () => {}
const held = () => new Promise<ModelReply>((resolve) => (letGo = resolve))

const rules = playerOf([
  { when: /say a command/, reply: { thinking: `Shall I? ${COMMAND}`, text: `I report.\n${COMMAND}` } },
  { when: /think for long/, reply: { text: 'Thought.', delayMs: 120_000 } },
  { when: /work a while/, reply: held },
  { when: /talk slowly/, reply: { text: 'word '.repeat(1000), chunkSize: 5, chunkMs: 50 } },
  { when: /print it/, reply: { text: 'I print.', toolCalls: [{ shell: `echo '${COMMAND}'` }] } },
  { when: /run the tests/, reply: { text: 'I run them.', toolCalls: [{ shell: 'touch ../tests-ran' }] } },
  { when: /tell the lead/, reply: { toolCalls: [{ mcp: 'send_message', input: { to: 'lead' } }] } },
])
const BROKEN = { error: { status: 400, message: 'It is broken.' } }

/** Failed prompts stay in the model's context: only the last prompt counts. */
const play: Player = (request) => (/fail now/.test(request.prompt) && !request.side ? BROKEN : rules(request))

const DIALOG = /Do you want to proceed/

const isStop = ({ event }: Noted) => event.hook_event_name === 'Stop'

/** By its own word. */
async function isAtPrompt(savedState: unknown): Promise<boolean> {
  const { statusFile } = (savedState as { program: { statusFile: string } }).program
  return (await readFile(statusFile, 'utf8')).includes('"status":"idle"')
}

describe.each(['claude-code', 'claude-code-2.1.197'] as const)('%s', (agent) => {
  let testAgent: TestAgent
  let hookServer: HookServer
  let session: Session
  let port: RecordingPort
  let messages = 0
  const program = createClaudeCode({
    log: { warn: (fields, text) => testAgent.problems.push({ text, ...fields }) },
  })

  beforeAll(async () => {
    hookServer = await startHookServer()
    testAgent = await openTestAgent({ agent, program, play, role: ROLE, url: hookServer.url, bin: ORC })
    await start()
  })
  beforeEach(() => testAgent.model.setPlay(play))
  afterAll(async () => {
    await testAgent.close()
    await hookServer.close()
  })

  async function start(savedState?: unknown) {
    ;({ session, port } = await testAgent.start(savedState))
    hookServer.attach(session)
    await port.until(
      () => session.state === 'idle' || session.state === 'waiting_input' || session.state === 'busy',
      60_000,
    )
  }
  async function restartService() {
    const { savedState } = port
    hookServer.attach(undefined)
    await session.leave()
    await testAgent.restartService()
    return savedState
  }
  const idle = () => port.until(() => session.state === 'idle', 60_000)
  const nextId = () => `msg_${++messages}`
  const spoken = () => port.said.map(({ text }) => text)
  const read = (id: string) =>
    port.until(() => port.arrived.find(({ ids, state }) => state === 'read' && ids.includes(id)))
  const met = new Set<Asked>()

  const newQuestion = () => port.asked.find((one) => !one.isGone && !met.has(one))

  async function openQuestion(): Promise<Asked> {
    const question = await port.until(newQuestion)
    met.add(question)
    return question
  }

  /**
   * A dialog takes no answer in its first moment, lest someone who types hits it unawares: as a person does, again, as
   * long as it stands there.
   */
  async function answerInPane(key: string) {
    await testAgent.shows(port, DIALOG)
    for (let presses = 0; presses < 20; presses++) {
      await testAgent.press(port, key)
      const isAnswered = await testAgent.hides(port, DIALOG, 2_000).then(
        () => true,
        () => false,
      )
      if (isAnswered) return
    }
    throw new Error('the dialog takes no key')
  }

  /** The program is at its prompt, and the hold at the end of a turn is over: only a paste can deliver. */
  async function quiet() {
    const isHeld = () => hookServer.hooks.some((one) => isStop(one) && one.answer === undefined)
    await expect
      .poll(async () => session.state === 'idle' && !isHeld() && (await isAtPrompt(port.savedState)))
      .toBe(true)
  }

  async function send(content: string) {
    await idle()
    const id = nextId()
    const arrival = await session.deliver({ text: envelope(id, content), ids: [id] })
    return { id, arrival }
  }

  const callWith = (text: string) =>
    testAgent.model.waitFor(({ request }) => request?.side === false && request.userText.includes(text))

  it('reports that the agent got nothing before its first turn (C25)', async () => {
    await quiet()
    // The screen may still be drawn, and then its content says nothing.
    await expect.poll(() => session.locate(['msg_1'])).toMatchObject([{ at: 'absent' }])
  })

  it('wakes an idle agent by a paste, and executes its command once (S1.2, C4, C25)', async () => {
    const { id, arrival } = await send('please say a command')
    expect(arrival).toMatchObject({ state: 'submitted' })
    await read(id)
    await idle()
    expect(port.said).toEqual([
      { text: `I report.\n${COMMAND}`, channel: 'transcript', key: expect.stringMatching(/^[0-9a-f-]{36}$/) },
    ])
  })

  it('passes the role to the model word for word, and reveals the token to nobody', async () => {
    expect(testAgent.model.calls('dev').at(-1)!.request!.system).toContain(ROLE)
    expect(JSON.stringify(port.savedState)).not.toContain('orc_token_of_dev')
    expect(hookServer.hooks.map(({ event }) => event.hook_event_name)).toContain('SessionStart')
    expect(new Set(hookServer.hooks.map(({ authorization }) => authorization))).toEqual(
      new Set(['Bearer orc_token_of_dev']),
    )
  })

  it('exchanges ten messages, each shown to the model once and in order (C25)', async () => {
    const before = testAgent.model.calls('dev').length
    const ids: string[] = []
    for (let n = 0; n < 10; n++) {
      const { id, arrival } = await send(`number ${n}`)
      expect(arrival).toMatchObject({ state: 'submitted' })
      await read(id)
      ids.push(id)
    }
    await idle()
    const calls = testAgent.model.calls('dev').slice(before)
    expect(calls.map(({ request }) => /number \d/.exec(request!.userText)?.[0])).toEqual(
      ids.map((_, n) => `number ${n}`),
    )
    for (const id of ids) expect(calls.at(-1)!.body.split(`[ORCHUB MESSAGE ${id}]`)).toHaveLength(2)
  })

  it.each([
    ['many lines', 'one\n\n  two\n    three'],
    ['100 KB', 'x '.repeat(51_000)],
    ['a leading !', '!touch hacked'],
    ['a leading /', '/quit'],
    ['a trailing backslash', 'ends with \\'],
    ['emoji and wide characters', '👩‍👩‍👧‍👦 é\u0301 ｗｉｄｅ'],
    ['a file mention at the end', 'look at @x', 'look at \\@x'],
  ])('delivers %s unchanged into an idle pane', async (_name, content, received = content) => {
    await quiet()
    const { id, arrival } = await send(content)
    expect(arrival).toMatchObject({ state: 'submitted' })
    await read(id)
    const call = await callWith(`${id}]`)
    expect(call.request!.userText).toContain(envelope(id, received))
    expect(await session.locate([id])).toMatchObject([{ at: 'submitted' }])
  })

  it.each([
    ['the end of a bracketed paste', 'a\u001b[201~\rb', /a\[201~\s?b/],
    ['tabs, which its input box turns into spaces', 'a\tb', /a {4}b/],
  ])('delivers %s into an idle pane', async (_name, content, carried) => {
    await quiet()
    const { id, arrival } = await send(content)
    expect(arrival).toMatchObject({ state: 'submitted' })
    await read(id)
    expect((await callWith(`${id}]`)).request!.userText).toMatch(carried)
  })

  it('confirms a turn without messages by its text', async () => {
    await quiet()
    const text = '[ORCHESTRATOR RESPONSE]\nCommand: list_agents\n\tStatus: ok\n[END ORCHESTRATOR RESPONSE]'
    expect(await session.deliver({ text, ids: [] })).toMatchObject({ state: 'submitted' })
    await quiet()
  })

  it('does not treat the output of a command, or thinking, as text of the agent (C4)', async () => {
    const before = port.said.length
    await send('print it')
    const isDone = () => port.said.length >= before + 2
    // Not every version asks first.
    await port.until(() => isDone() || newQuestion())
    if (!isDone()) (await openQuestion()).answer({ allow: true })
    await port.until(isDone)
    await idle()
    expect(port.said.slice(before).some(({ text }) => text.includes(COMMAND))).toBe(false)
  })

  it('reaches the engine over MCP in its own name, without a dialog (C3)', async () => {
    await send('tell the lead')
    await port.until(() => session.state === 'idle' && hookServer.messages.length > 0)
    expect(hookServer.messages).toEqual([{ to: 'lead', authorization: 'Bearer orc_token_of_dev' }])
  })

  it('accepts no message while it is busy, and gets a notice after a tool call (C2)', async () => {
    await quiet()
    await send('run the tests')
    const question = await openQuestion()
    expect(await session.deliver({ text: envelope('msg_x', 'later'), ids: ['msg_x'] })).toMatchObject({
      state: 'queued',
    })
    await session.notice('[ORCHUB NOTICE] 1 message waits')
    question.answer({ allow: true })
    await testAgent.model.waitFor((one) => one.body.includes('ORCHUB NOTICE'))
    await idle()
    expect(await session.locate(['msg_x'])).toMatchObject([{ at: 'absent' }])
  })

  it('reports the context usage, relative to the window of the model (C26)', async () => {
    expect(port.used.at(-1)).toMatchObject({
      model: expect.stringContaining('claude'),
      contextTokens: expect.any(Number),
      contextWindow: 1_000_000,
      spent: { key: expect.any(String), input: expect.any(Number), output: expect.any(Number) },
    })
  })

  it('asks for permission outside the pane, and accepts the verdict from there (ask 9)', async () => {
    await send('run the tests')
    const question = await openQuestion()
    expect(question).toMatchObject({ tool: 'Bash', input: { command: 'touch ../tests-ran' } })
    expect(session.state).toBe('waiting_input')
    question.answer({ allow: false, comment: 'not on a Friday' })
    await testAgent.model.waitFor(
      (one) => one.request?.toolResults.some((text) => text.includes('not on a Friday')) ?? false,
    )
    await idle()
    expect(question.isGone).toBe(false)
  })

  it('closes the request when the person answers in the pane', async () => {
    await send('run the tests')
    const question = await openQuestion()
    await answerInPane('Enter')
    await port.until(() => question.isGone)
    await idle()
  })

  it('closes the request when the person denies it in the pane with Escape', async () => {
    await send('run the tests')
    const question = await openQuestion()
    await answerInPane('Escape')
    await port.until(() => question.isGone)
    await quiet()
  })

  it('waits for the draft of a person, and never mixes with it (ask 4)', async () => {
    await quiet()
    await testAgent.type(port, 'a half-typed thought')
    await testAgent.shows(port, /half-typed thought/)
    const { id, arrival } = await send('hello there')
    expect(arrival).toMatchObject({ state: 'queued', evidence: expect.stringContaining('draft') })
    expect(await session.locate([id])).toMatchObject([{ at: 'unknown' }])
    await testAgent.press(port, 'Enter')
    await callWith('a half-typed thought')
    await quiet()
    expect(await session.locate([id])).toMatchObject([{ at: 'absent' }])
  })

  it('reaches an agent past a draft at the end of its turn, once, and leaves the draft alone (ask 4)', async () => {
    await quiet()
    const { id: first } = await send('work a while')
    await callWith(`${first}]`)
    await testAgent.type(port, 'another thought')
    await testAgent.shows(port, /❯.another thought/)
    letGo({ text: 'Worked.' })
    await read(first)
    const { id, arrival } = await send('hello there')
    expect(arrival).toMatchObject({ state: 'submitted' })
    await read(id)
    const { request, body } = await callWith(`${id}]`)
    expect(request!.userText).toContain(envelope(id, 'hello there'))
    expect(request!.userText).not.toContain('another thought')
    expect(body.split(`[ORCHUB MESSAGE ${id}]`)).toHaveLength(2)

    const frame = envelope('msg_00', '').length
    const longest = await send('x'.repeat(MAX_HOOK_RESPONSE_BYTES - frame))
    expect(longest.arrival).toMatchObject({ state: 'submitted' })
    await read(longest.id)
    expect((await callWith(`${longest.id}]`)).body).toContain(
      `${'x'.repeat(MAX_HOOK_RESPONSE_BYTES - frame)}\\n`,
    )
    const tooLong = await send('x'.repeat(MAX_HOOK_RESPONSE_BYTES))
    expect(tooLong.arrival).toMatchObject({ state: 'queued', evidence: expect.stringContaining('draft') })
    await testAgent.shows(port, /❯.another thought/)
    await quiet()
    for (let n = 0; n < 3; n++) await testAgent.press(port, 'C-u')
  })

  it('never types into a menu that a person opened', async () => {
    await quiet()
    await testAgent.enter(port, '/model')
    await testAgent.shows(port, /Select model/)
    const turn = { text: envelope('msg_z', 'hello there'), ids: ['msg_z'] }
    expect(await session.deliver(turn)).toMatchObject({ state: 'queued' })
    await testAgent.press(port, 'Escape')
    await testAgent.hides(port, /Select model/)
    await quiet()
    expect(await session.locate(['msg_z'])).toMatchObject([{ at: 'absent' }])
  })

  it('continues after a failed turn, and reports why it is idle', async () => {
    await quiet()
    const { id } = await send('fail now')
    await port.until(() => port.states.at(-1)?.evidence.includes('It is broken'))
    expect(port.arrived.filter(({ ids, state }) => ids.includes(id) && state === 'read')).toEqual([])
    expect(spoken().some((text) => text.includes('It is broken'))).toBe(false)
    const { id: next } = await send('and again')
    await read(next)
  })

  it('interrupts a turn that has begun to answer, with evidence (C2)', async () => {
    await quiet()
    await send('talk slowly')
    await testAgent.shows(port, /word word/)
    expect(await session.interrupt()).toMatchObject({ stopped: true })
    await quiet()
    await testAgent.shows(port, /Interrupted/)
  })

  it('redelivers a message that an interrupt withdrew before the model saw it (ask 11)', async () => {
    await quiet()
    const { id } = await send('think for long, but not twice')
    await callWith(`${id}]`)
    testAgent.model.setPlay(playerOf([]))
    expect(await session.interrupt()).toMatchObject({ stopped: true })
    const urgent = await send('stop everything')
    expect(urgent.arrival).toMatchObject({ state: 'submitted' })
    await read(id)
    await read(urgent.id)
    const call = await callWith(`${urgent.id}]`)
    expect(call.request!.userText).toContain(envelope(id, 'think for long, but not twice'))
    await quiet()
  })

  it('redelivers a message by itself that a person withdrew and discarded', async () => {
    await quiet()
    const { id } = await send('think for long')
    await callWith(`${id}]`)
    testAgent.model.setPlay(playerOf([]))
    await testAgent.press(port, 'Escape')
    await testAgent.shows(port, new RegExp(`─\\s*\\n❯.\\[ORCHUB MESSAGE ${id}\\]`))
    await idle()
    for (let n = 0; n < 20; n++) await testAgent.press(port, 'C-u')
    await read(id)
    await quiet()
  })

  it('continues in another conversation when a person clears this one', async () => {
    await quiet()
    await testAgent.enter(port, '/clear')
    const isCleared = ({ event, answer }: Noted) => event.source === 'clear' && answer !== undefined
    await expect.poll(() => hookServer.hooks.some(isCleared)).toBe(true)
    await quiet()
    const { id } = await send('a new beginning')
    await read(id)
    const call = await callWith('a new beginning')
    expect(call.body).not.toContain('stop everything')
    expect(call.request!.system).toContain(ROLE)
  })

  it('keeps the role when the context is compacted (ask 15)', async () => {
    for (const content of ['one thing', 'another thing']) await read((await send(content)).id)
    await quiet()
    const before = port.states.length
    await testAgent.enter(port, '/compact')
    await port.until(() => port.states.slice(before).some(({ state }) => state === 'busy'))
    await quiet()
    const { id } = await send('still there?')
    await read(id)
    const call = await callWith('still there?')
    expect(call.request!.system).toContain(ROLE)
    expect(call.body).not.toContain('a new beginning')
  })

  it('loses no text written while the service is down, and is found again (C25)', async () => {
    await quiet()
    const { id } = await send('work a while')
    await callWith(`${id}]`)
    const savedState = await restartService()
    const stops = hookServer.hooks.filter(isStop).length
    letGo({ text: 'Worked.' })
    await expect.poll(() => hookServer.hooks.filter(isStop).length).toBe(stops + 1)
    await expect.poll(() => isAtPrompt(savedState)).toBe(true)
    await start(savedState)
    await port.until(() => spoken().includes('Worked.'))
    await read(id)
    await idle()
    expect(port.said).toHaveLength(1)
    const { arrival } = await send('and on')
    expect(arrival).toMatchObject({ state: 'submitted' })
    await quiet()
  })

  it('sees an open dialog after a restart of the service, and types nothing into it (ask 3)', async () => {
    await send('run the tests')
    await openQuestion()
    await start(await restartService())
    await port.until(() => session.state === 'waiting_input')
    const { arrival } = { arrival: await session.deliver({ text: envelope('msg_y', 'x'), ids: ['msg_y'] }) }
    expect(arrival.state).toBe('queued')
    await answerInPane('Enter')
    await quiet()
  })

  it('resumes its conversation after everything was killed, with its role (asks 10, 15)', async () => {
    const { id } = await send('remember the word xylophone')
    await read(id)
    await quiet()
    const savedState = await restartService()
    await testAgent.killAll()
    await start(savedState)
    await idle()
    expect(port.said).toEqual([])
    const { id: next } = await send('which word was it?')
    await read(next)
    const call = await callWith('which word was it?')
    expect(call.body).toContain('xylophone')
    expect(call.request!.system).toContain(ROLE)
    expect(await session.locate([id])).toMatchObject([{ at: 'submitted' }])
    await idle()
  })

  it('leaves no process behind, and no warnings in the log', async () => {
    await session.stop()
    expect(await testAgent.left()).toEqual([])
    expect(testAgent.problems).toEqual([])
  })
})
