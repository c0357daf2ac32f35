import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createGemini } from '../../src/programs/gemini/program.ts'
import type { Session } from '../../src/runtimes/runtime.ts'
import type { ModelReply, Rule } from '../fakes/model-server/play.ts'
import { type HookServer, startHookServer } from './harness/hook-server.ts'
import type { Asked, RecordingPort } from './harness/recording-port.ts'
import { openTestAgent, type TestAgent } from './harness/test-agent.ts'

const envelope = (id: string, content: string) =>
  `[ORCHUB MESSAGE ${id}]\nFrom: lead\nTitle: A task\nPriority: normal\n\n${content}\n\n[END ORCHUB MESSAGE ${id}]`

const COMMAND = '<orc-command name="send_message" to="lead">All is well.</orc-command>'
const ORC = join(import.meta.dirname, '../../orc')

/** Lets the model speak that is silent in `work a while`. */
let letGo: (reply: ModelReply) => void = () => {}
const held = () => new Promise<ModelReply>((resolve) => (letGo = resolve))

/** Never twice the same, which would be a loop. */
const MANY_WORDS = Array.from({ length: 600 }, (_, n) => `word ${n} `).join('')

const play: Rule[] = [
  { when: /say a command/, reply: { text: `I report.\n${COMMAND}` } },
  { when: /think for long/, times: 1, reply: { text: 'Thought.', delayMs: 120_000 } },
  { when: /work a while/, reply: held },
  { when: /talk slowly/, times: 1, reply: { text: MANY_WORDS, chunkSize: 14, chunkMs: 100 } },
  { when: /run the tests/, reply: { text: 'I run them.', toolCalls: [{ shell: 'touch tests-ran' }] } },
  { when: /look around/, reply: { text: 'I look.', toolCalls: [{ shell: 'sleep 1; echo seen' }] } },
  { when: /tell the lead/, reply: { toolCalls: [{ mcp: 'send_message', input: { to: 'lead' } }] } },
  {
    when: /repeat yourself/,
    reply: { text: 'I say the same thing again and again, without an end. '.repeat(120) },
  },
  { when: /fail now/, times: 1, reply: { error: { status: 400, message: 'It is broken.' } } },
  { toolResult: /./, reply: { text: 'The tool is done.' } },
]

describe('gemini', () => {
  let testAgent: TestAgent
  let hookServer: HookServer
  let session: Session
  let port: RecordingPort
  let messages = 0
  const program = createGemini({
    log: { warn: (fields, text) => testAgent.problems.push({ text, ...fields }) },
  })

  beforeAll(async () => {
    hookServer = await startHookServer()
    const role = 'You are dev, of the crew of the Argo. Write to @lead.'
    testAgent = await openTestAgent({ agent: 'gemini', program, play, role, url: hookServer.url, bin: ORC })
    await start()
    await idle()
  })
  afterAll(async () => {
    await testAgent.close()
    await hookServer.close()
  })

  async function start(savedState?: unknown) {
    ;({ session, port } = await testAgent.start(savedState))
    hookServer.attach(session)
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
  /** Gemini takes half a minute for 100 KB before it calls the model, and minutes on a busy machine. */
  const read = (id: string) =>
    port.until(() => port.arrived.find(({ ids, state }) => state === 'read' && ids.includes(id)), 300_000)
  /** The model is asked about that message. */
  const asks = (id: string) =>
    testAgent.model.waitFor(
      (one) => one.request?.userText.includes(`MESSAGE ${id}]`) === true && !one.request.side,
    )
  const turnEnds = () => hookServer.hooks.filter(({ event }) => event.hook_event_name === 'AfterAgent').length
  const question = () => port.until(() => port.asked.find(({ isGone }) => !isGone))

  async function send(content: string) {
    await idle()
    const id = nextId()
    const arrival = await session.deliver({ text: envelope(id, content), ids: [id] })
    expect(arrival).toMatchObject({ state: 'submitted' })
    return { id }
  }

  it('delivers a message to the agent, and executes its command once (S1.2, C4, C25)', async () => {
    const { id } = await send('please say a command')
    await read(id)
    await port.until(() => spoken().some((text) => text.includes(COMMAND)))
    await idle()
    expect(port.said).toHaveLength(1)
    expect(port.said[0]).toMatchObject({ channel: 'transcript' })
  })

  it('sends the role with every request, and the token of the agent to the service (C3)', async () => {
    expect(testAgent.model.calls('dev').at(-1)!.body).toContain(
      'You are dev, of the crew of the Argo. Write to @',
    )
    expect(testAgent.model.calls('dev').at(-1)!.body).not.toContain('Import failed')
    expect(new Set(hookServer.hooks.map(({ authorization }) => authorization))).toEqual(
      new Set(['Bearer orc_token_of_dev']),
    )
  })

  it('lets the agent use the tools of the service without a dialog', async () => {
    await send('tell the lead')
    await port.until(() => spoken().includes('The tool is done.'))
    await idle()
    expect(hookServer.messages).toEqual([{ to: 'lead', authorization: 'Bearer orc_token_of_dev' }])
    expect(port.asked).toEqual([])
  })

  it('reports the context usage (C26)', () => {
    expect(port.used[0]).toMatchObject({
      contextTokens: expect.any(Number),
      contextWindow: 1_048_576,
      spent: { cacheWrite: 0 },
    })
  })

  it('exchanges ten messages, each read once and in order (C25)', async () => {
    const before = testAgent.model.calls('dev').length
    for (let n = 0; n < 10; n++) {
      const { id } = await send(`number ${n}`)
      await read(id)
    }
    await idle()
    const prompts = testAgent.model.calls('dev').slice(before)
    expect(prompts.map(({ request }) => /number \d/.exec(request!.userText)?.[0])).toEqual(
      Array.from({ length: 10 }, (_, n) => `number ${n}`),
    )
  })

  it.each([
    ['many lines', 'one\n\n  two\n\tthree'],
    [
      '100 KB',
      Array.from({ length: 9_000 }, (_, n) => `word ${n}`)
        .join(' ')
        .slice(0, 100_000),
    ],
    ['a leading !', '!touch hacked'],
    ['a leading /', '/quit'],
    ['a trailing backslash', 'ends with \\'],
    ['emoji', '👩‍👩‍👧‍👦 é ｗｉｄｅ'],
  ])('delivers %s unchanged', async (_name, content) => {
    const { id } = await send(content)
    await read(id)
    const call = await asks(id)
    expect(call.request!.userText).toContain(envelope(id, content))
    expect(await session.locate([id])).toMatchObject([{ at: 'submitted' }])
  })

  it('passes the name of a file as a name, and not as that file', async () => {
    const { id } = await send('look at @x')
    await read(id)
    expect((await asks(id)).request!.userText).toContain(envelope(id, 'look at \\@x'))
  })

  it('removes the end of a bracketed paste from a text, so that none of it is typed', async () => {
    const { id } = await send('a\u001b[201~\rrm -rf x')
    expect((await asks(id)).request!.userText).not.toContain('\u001b')
    await read(id)
  })

  it('reports a message that it never got as absent', async () => {
    await idle()
    // The screen may still be drawn, and then its content says nothing.
    await expect.poll(() => session.locate(['msg_999999'])).toMatchObject([{ at: 'absent' }])
  })

  it('waits until a draft is gone (field notes 4)', async () => {
    await idle()
    await testAgent.type(port, 'a half-typed thought')
    await testAgent.shows(port, /a half-typed thought/)
    expect(await session.deliver({ text: envelope('msg_d', 'hello'), ids: ['msg_d'] })).toMatchObject({
      state: 'queued',
    })
    await testAgent.shows(port, /> a half-typed thought/)
    // A person sends it after all: the agent is busy with it, and that is seen too.
    await testAgent.press(port, 'Enter')
    await testAgent.model.waitFor((one) => one.request?.userText.includes('a half-typed thought') ?? false)
    await idle()
  })

  it('accepts no message while it is busy, and gets a notice within its turn (C2)', async () => {
    const { id } = await send('look around')
    await asks(id)
    expect(await session.deliver({ text: 'later', ids: [] })).toMatchObject({ state: 'queued' })
    await session.notice('[ORCHUB NOTICE] 1 message waits')
    const asked = await question()
    await testAgent.shows(port, /Allow once/)
    asked.answer({ allow: true })
    await testAgent.model.waitFor((one) => one.body.includes('ORCHUB NOTICE'))
    await idle()
  })

  it('asks for permission outside the pane, and accepts the verdict from there (ask 9)', async () => {
    await send('run the tests')
    const asked: Asked = await question()
    expect(asked).toMatchObject({ tool: 'exec', input: { command: 'touch tests-ran' } })
    expect(session.state).toBe('waiting_input')
    await testAgent.shows(port, /Allow once/)
    asked.answer({ allow: true })
    await port.until(() => asked.isGone)
    await idle()
    expect(await readFile(join(testAgent.cwd, 'tests-ran'), 'utf8')).toBe('')
  })

  it('closes the request when the person answers in the pane', async () => {
    await send('run the tests')
    const asked = await question()
    await testAgent.shows(port, /Allow once/)
    await testAgent.press(port, 'Enter')
    await port.until(() => asked.isGone)
    await idle()
  })

  it('reports a denial to the agent in its next turn (C9)', async () => {
    await send('run the tests')
    const asked = await question()
    await testAgent.shows(port, /Allow once/)
    asked.answer({ allow: false, comment: 'not on a Friday' })
    await idle()
    expect(asked.isGone).toBe(true)
    await send('what now?')
    await testAgent.model.waitFor((one) => one.body.includes('not on a Friday'))
    await idle()
  })

  it('stops a turn, with evidence; text that was cut off is not passed on (C2, C5)', async () => {
    const { id } = await send('think for long')
    await asks(id)
    expect(await session.interrupt()).toMatchObject({ stopped: true })
    const before = port.said.length
    const slow = await send('talk slowly')
    await asks(slow.id)
    await testAgent.shows(port, /word 3 word 4/)
    expect(await session.interrupt()).toMatchObject({ stopped: true })
    await sleep(1_000)
    expect(port.said.slice(before)).toEqual([])
  })

  it('stops a turn that asks for permission, and leaves no dialog behind', async () => {
    await send('run the tests')
    const asked = await question()
    await testAgent.shows(port, /Allow once/)
    expect(await session.interrupt()).toMatchObject({ stopped: true })
    expect(asked.isGone).toBe(true)
    await expect.poll(() => testAgent.screen(port)).not.toContain('Allow once')
  })

  it('is idle again after an error of the model', async () => {
    const before = port.states.length
    await send('fail now')
    await port.until(() => port.states.slice(before).some(({ state }) => state === 'busy'))
    await idle()
    await send('and on')
    await idle()
  })

  it('waits for a person when it suspects a loop in its answer', async () => {
    await send('repeat yourself')
    await port.until(() => session.state === 'waiting_input')
    await testAgent.shows(port, /potential loop was detected/)
    await testAgent.press(port, 'Enter')
    await idle()
  })

  it('repeats no text, however often its transcript is rewritten (C25)', () => {
    const keys = port.said.map(({ key }) => key)
    expect(new Set(keys).size).toBe(keys.length)
    expect(spoken().filter((text) => text.includes(COMMAND))).toHaveLength(1)
  })

  it('loses no text written while the service is down, and is found again (C25)', async () => {
    const { id } = await send('work a while')
    await asks(id)
    const savedState = await restartService()
    const ends = turnEnds()
    letGo({ text: 'Worked.' })
    await expect.poll(turnEnds).toBe(ends + 1)
    await start(savedState)
    await port.until(() => spoken().includes('Worked.'))
    await read(id)
    await idle()
    expect(spoken().filter((text) => text.includes(COMMAND))).toEqual([])
    await send('and on')
    await idle()
  })

  it('keeps the role when the context is compressed (ask 15)', async () => {
    const before = testAgent.model.requests.length
    await testAgent.enter(port, '/compress')
    await testAgent.shows(port, /Chat history compressed/)
    const { id } = await send('still there?')
    await read(id)
    expect(testAgent.model.requests.length).toBeGreaterThan(before + 1)
    expect((await asks(id)).body).toContain('of the crew of the Argo')
    await idle()
  })

  it('resumes its conversation after everything was killed, with its role (asks 10, 15)', async () => {
    const { id } = await send('remember the word xylophone')
    await read(id)
    await idle()
    const savedState = await restartService()
    await testAgent.killAll()
    await start(savedState)
    await idle()
    const { id: next } = await send('which word was it?')
    await read(next)
    const call = await asks(next)
    expect(call.body).toContain('xylophone')
    expect(call.body).toContain('of the crew of the Argo')
    expect(await session.locate([id])).toMatchObject([{ at: 'submitted' }])
    expect(spoken().filter((text) => text.includes(COMMAND))).toEqual([])
    await idle()
  })

  it('leaves nothing behind when it is stopped', async () => {
    await session.stop()
    expect(session.state).toBe('exited')
    expect(await testAgent.left()).toEqual([])
  })

  it('reports a missing conversation that should be resumed', async () => {
    const savedState = structuredClone(port.savedState) as {
      program: { transcript: string; sessionId: string }
    }
    savedState.program.transcript = '/nowhere/session.jsonl'
    await expect(testAgent.start(savedState)).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: expect.stringContaining(savedState.program.sessionId),
    })
  })

  it('sent no unknown message', () => {
    expect(testAgent.problems).toEqual([])
  })
})
