import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { MAX_HOOK_RESPONSE_BYTES } from '../../src/programs/claude-code/deliver.ts'
import { createClaudeCode } from '../../src/programs/claude-code/program.ts'
import { type Player, playerOf } from '../fakes/model-server/play.ts'
import { type HookServer, type Noted, startHookServer } from './harness/hook-server.ts'
import {
  COMMAND,
  createHeldReply,
  envelope,
  openTestAgent,
  ROLE,
  type TestAgent,
} from './harness/test-agent.ts'

const ORC = join(import.meta.dirname, '../../orc')

const held = createHeldReply()

const rules = playerOf([
  { when: /say a command/, reply: { thinking: `Shall I? ${COMMAND}`, text: `I report.\n${COMMAND}` } },
  { when: /think for long/, reply: { text: 'Thought.', delayMs: 120_000 } },
  { when: /work a while/, reply: held.reply },
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

/** According to its own status file. */
async function isAtPrompt(savedState: unknown): Promise<boolean> {
  const { statusFile } = (savedState as { program: { statusFile: string } }).program
  return (await readFile(statusFile, 'utf8')).includes('"status":"idle"')
}

describe.each(['claude-code', 'claude-code-2.1.197'] as const)('%s', (agent) => {
  let dev: TestAgent
  let hookServer: HookServer

  beforeAll(async () => {
    hookServer = await startHookServer()
    dev = await openTestAgent({
      ...{ agent, program: createClaudeCode, play, role: ROLE, hookServer, bin: ORC },
    })
    await start()
  })
  beforeEach(() => dev.model.setPlay(play))
  afterAll(() => dev.close())

  async function start(savedState?: unknown) {
    await dev.start(savedState)
    await dev.port.until(() => ['idle', 'waiting_input', 'busy'].includes(dev.session.state), 60_000)
  }

  /**
   * A dialog takes no answer in its first moment, lest someone who types hits it unawares: as a person does, again, as
   * long as it stands there.
   */
  async function answerInPane(key: string) {
    await dev.shows(DIALOG)
    for (let presses = 0; presses < 20; presses++) {
      await dev.press(key)
      const isAnswered = await dev.hides(DIALOG, 2_000).then(
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
      .poll(async () => dev.session.state === 'idle' && !isHeld() && (await isAtPrompt(dev.port.savedState)))
      .toBe(true)
  }

  it('reports that the agent got nothing before its first turn (C25)', async () => {
    await quiet()
    // The screen may still be drawn, and then its content says nothing.
    await expect.poll(() => dev.session.locate(['msg_1'])).toMatchObject([{ at: 'absent' }])
  })

  it('wakes an idle agent by a paste, and executes its command once (S1.2, C4, C25)', async () => {
    const id = await dev.submit('please say a command')
    await dev.read(id)
    await dev.idle()
    expect(dev.port.said).toEqual([
      { text: `I report.\n${COMMAND}`, channel: 'transcript', key: expect.stringMatching(/^[0-9a-f-]{36}$/) },
    ])
  })

  it('passes the role to the model word for word, and reveals the token to nobody', async () => {
    expect(dev.model.calls('dev').at(-1)!.request!.system).toContain(ROLE)
    expect(JSON.stringify(dev.port.savedState)).not.toContain('orc_token_of_dev')
    expect(hookServer.hooks.map(({ event }) => event.hook_event_name)).toContain('SessionStart')
    expect(new Set(hookServer.hooks.map(({ authorization }) => authorization))).toEqual(
      new Set(['Bearer orc_token_of_dev']),
    )
  })

  it('exchanges ten messages, each shown to the model once and in order (C25)', async () => {
    const { ids, calls } = await dev.exchangeTen()
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
    await dev.deliverUnchanged(content, received)
  })

  it.each([
    ['the end of a bracketed paste', 'a\u001b[201~\rb', /a\[201~\s?b/],
    ['tabs, which its input box turns into spaces', 'a\tb', /a {4}b/],
  ])('delivers %s into an idle pane', async (_name, content, carried) => {
    await quiet()
    const id = await dev.submit(content)
    await dev.read(id)
    expect((await dev.callAbout(id)).request!.userText).toMatch(carried)
  })

  it('confirms a turn without messages by its text', async () => {
    await quiet()
    const text = '[ORCHESTRATOR RESPONSE]\nCommand: list_agents\n\tStatus: ok\n[END ORCHESTRATOR RESPONSE]'
    expect(await dev.session.deliver({ text, ids: [] })).toMatchObject({ state: 'submitted' })
    await quiet()
  })

  it('does not treat the output of a command, or thinking, as text of the agent (C4)', async () => {
    const before = dev.port.said.length
    await dev.send('print it')
    const isDone = () => dev.port.said.length >= before + 2
    // Not every version asks first.
    await dev.port.until(() => isDone() || dev.newQuestion())
    if (!isDone()) (await dev.openQuestion()).answer({ allow: true })
    await dev.port.until(isDone)
    await dev.idle()
    expect(dev.port.said.slice(before).some(({ text }) => text.includes(COMMAND))).toBe(false)
  })

  it('reaches the engine over MCP in its own name, without a dialog (C3)', async () => {
    await dev.send('tell the lead')
    await dev.port.until(() => dev.session.state === 'idle' && hookServer.messages.length > 0)
    expect(hookServer.messages).toEqual([{ to: 'lead', authorization: 'Bearer orc_token_of_dev' }])
  })

  it('accepts no message while it is busy, and gets a notice after a tool call (C2)', async () => {
    await quiet()
    const question = await dev.askFor('run the tests')
    expect(await dev.session.deliver({ text: envelope('msg_x', 'later'), ids: ['msg_x'] })).toMatchObject({
      state: 'queued',
    })
    await dev.session.notice('[ORCHUB NOTICE] 1 message waits')
    question.answer({ allow: true })
    await dev.model.waitFor((one) => one.body.includes('ORCHUB NOTICE'))
    await dev.idle()
    expect(await dev.session.locate(['msg_x'])).toMatchObject([{ at: 'absent' }])
  })

  it('reports the context usage, relative to the window of the model (C26)', async () => {
    expect(dev.port.used.at(-1)).toMatchObject({
      model: expect.stringContaining('claude'),
      contextTokens: expect.any(Number),
      contextWindow: 1_000_000,
      spent: { key: expect.any(String), input: expect.any(Number), output: expect.any(Number) },
    })
  })

  it('asks for permission outside the pane, and accepts the verdict from there (ask 9)', async () => {
    const question = await dev.askFor('run the tests')
    expect(question).toMatchObject({ tool: 'Bash', input: { command: 'touch ../tests-ran' } })
    expect(dev.session.state).toBe('waiting_input')
    question.answer({ allow: false, comment: 'not on a Friday' })
    await dev.model.waitFor(
      (one) => one.request?.toolResults.some((text) => text.includes('not on a Friday')) ?? false,
    )
    await dev.idle()
    expect(question.isGone).toBe(false)
  })

  it('closes the request when the person answers in the pane', async () => {
    const question = await dev.askFor('run the tests')
    await answerInPane('Enter')
    await dev.port.until(() => question.isGone)
    await dev.idle()
  })

  it('closes the request when the person denies it in the pane with Escape', async () => {
    const question = await dev.askFor('run the tests')
    await answerInPane('Escape')
    await dev.port.until(() => question.isGone)
    await quiet()
  })

  it('waits for the draft of a person, and never mixes with it (ask 4)', async () => {
    await quiet()
    await dev.type('a half-typed thought')
    await dev.shows(/half-typed thought/)
    const { id, arrival } = await dev.send('hello there')
    expect(arrival).toMatchObject({ state: 'queued', evidence: expect.stringContaining('draft') })
    expect(await dev.session.locate([id])).toMatchObject([{ at: 'unknown' }])
    await dev.press('Enter')
    await dev.callWith('a half-typed thought')
    await quiet()
    expect(await dev.session.locate([id])).toMatchObject([{ at: 'absent' }])
  })

  it('reaches an agent past a draft at the end of its turn, once, and leaves the draft alone (ask 4)', async () => {
    await quiet()
    const { id: first } = await dev.send('work a while')
    await dev.callAbout(first)
    await dev.type('another thought')
    await dev.shows(/❯.another thought/)
    held.letGo({ text: 'Worked.' })
    await dev.read(first)
    const id = await dev.submit('hello there')
    await dev.read(id)
    const { request, body } = await dev.callAbout(id)
    expect(request!.userText).toContain(envelope(id, 'hello there'))
    expect(request!.userText).not.toContain('another thought')
    expect(body.split(`[ORCHUB MESSAGE ${id}]`)).toHaveLength(2)

    const frame = envelope('msg_00', '').length
    const longest = await dev.send('x'.repeat(MAX_HOOK_RESPONSE_BYTES - frame))
    expect(longest.arrival).toMatchObject({ state: 'submitted' })
    await dev.read(longest.id)
    expect((await dev.callAbout(longest.id)).body).toContain(
      `${'x'.repeat(MAX_HOOK_RESPONSE_BYTES - frame)}\\n`,
    )
    const tooLong = await dev.send('x'.repeat(MAX_HOOK_RESPONSE_BYTES))
    expect(tooLong.arrival).toMatchObject({ state: 'queued', evidence: expect.stringContaining('draft') })
    await dev.shows(/❯.another thought/)
    await quiet()
    for (let n = 0; n < 3; n++) await dev.press('C-u')
  })

  it('never types into a menu that a person opened', async () => {
    await quiet()
    await dev.enter('/model')
    await dev.shows(/Select model/)
    const turn = { text: envelope('msg_z', 'hello there'), ids: ['msg_z'] }
    expect(await dev.session.deliver(turn)).toMatchObject({ state: 'queued' })
    await dev.press('Escape')
    await dev.hides(/Select model/)
    await quiet()
    expect(await dev.session.locate(['msg_z'])).toMatchObject([{ at: 'absent' }])
  })

  it('continues after a failed turn, and reports why it is idle', async () => {
    await quiet()
    const { id } = await dev.send('fail now')
    await dev.port.until(() => dev.port.states.at(-1)?.evidence.includes('It is broken'))
    expect(dev.hasRead(id)).toBe(false)
    expect(dev.spoken().some((text) => text.includes('It is broken'))).toBe(false)
    const { id: next } = await dev.send('and again')
    await dev.read(next)
  })

  it('interrupts a turn that has begun to answer, with evidence (C2)', async () => {
    await quiet()
    await dev.send('talk slowly')
    await dev.shows(/word word/)
    expect(await dev.session.interrupt()).toMatchObject({ stopped: true })
    await quiet()
    await dev.shows(/Interrupted/)
  })

  it('redelivers a message that an interrupt withdrew before the model saw it (ask 11)', async () => {
    await quiet()
    const { id } = await dev.send('think for long, but not twice')
    await dev.callAbout(id)
    dev.model.setPlay(playerOf([]))
    expect(await dev.session.interrupt()).toMatchObject({ stopped: true })
    const urgent = await dev.send('stop everything')
    expect(urgent.arrival).toMatchObject({ state: 'submitted' })
    await dev.read(id)
    await dev.read(urgent.id)
    const call = await dev.callAbout(urgent.id)
    expect(call.request!.userText).toContain(envelope(id, 'think for long, but not twice'))
    await quiet()
  })

  it('redelivers a message by itself that a person withdrew and discarded', async () => {
    await quiet()
    const { id } = await dev.send('think for long')
    await dev.callAbout(id)
    dev.model.setPlay(playerOf([]))
    await dev.press('Escape')
    await dev.shows(new RegExp(`─\\s*\\n❯.\\[ORCHUB MESSAGE ${id}\\]`))
    await dev.idle()
    for (let n = 0; n < 20; n++) await dev.press('C-u')
    await dev.read(id)
    await quiet()
  })

  it('continues in another conversation when a person clears this one', async () => {
    await quiet()
    await dev.enter('/clear')
    const isCleared = ({ event, answer }: Noted) => event.source === 'clear' && answer !== undefined
    await expect.poll(() => hookServer.hooks.some(isCleared)).toBe(true)
    await quiet()
    const { id } = await dev.send('a new beginning')
    await dev.read(id)
    const call = await dev.callWith('a new beginning')
    expect(call.body).not.toContain('stop everything')
    expect(call.request!.system).toContain(ROLE)
  })

  it('keeps the role when the context is compacted (ask 15)', async () => {
    for (const content of ['one thing', 'another thing']) await dev.read((await dev.send(content)).id)
    await quiet()
    const before = dev.port.states.length
    await dev.enter('/compact')
    await dev.port.until(() => dev.port.states.slice(before).some(({ state }) => state === 'busy'))
    await quiet()
    const { id } = await dev.send('still there?')
    await dev.read(id)
    const call = await dev.callWith('still there?')
    expect(call.request!.system).toContain(ROLE)
    expect(call.body).not.toContain('a new beginning')
  })

  it('loses no text written while the service is down, and is found again (C25)', async () => {
    await quiet()
    const { id } = await dev.send('work a while')
    await dev.callAbout(id)
    const savedState = await dev.restartService()
    const stops = hookServer.hooks.filter(isStop).length
    held.letGo({ text: 'Worked.' })
    await expect.poll(() => hookServer.hooks.filter(isStop).length).toBe(stops + 1)
    await expect.poll(() => isAtPrompt(savedState)).toBe(true)
    await start(savedState)
    await dev.port.until(() => dev.spoken().includes('Worked.'))
    await dev.read(id)
    await dev.idle()
    expect(dev.port.said).toHaveLength(1)
    await dev.submit('and on')
    await quiet()
  })

  it('sees an open dialog after a restart of the service, and types nothing into it (ask 3)', async () => {
    await dev.askFor('run the tests')
    await start(await dev.restartService())
    await dev.port.until(() => dev.session.state === 'waiting_input')
    const turn = { text: envelope('msg_y', 'x'), ids: ['msg_y'] }
    expect(await dev.session.deliver(turn)).toMatchObject({ state: 'queued' })
    await answerInPane('Enter')
    await quiet()
  })

  it('resumes its conversation after everything was killed, with its role (asks 10, 15)', async () => {
    const id = await dev.resumeAfterKill(quiet)
    expect(dev.port.said).toEqual([])
    expect((await dev.recallWord(id)).request!.system).toContain(ROLE)
  })

  it('leaves no process behind, and no warnings in the log', async () => {
    await dev.session.stop()
    expect(await dev.left()).toEqual([])
    expect(dev.problems).toEqual([])
  })
})
