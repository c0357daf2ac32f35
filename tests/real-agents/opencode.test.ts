import { once } from 'node:events'
import { readFile, stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createOpencode } from '../../src/programs/opencode/program.ts'
import type { Session } from '../../src/runtimes/runtime.ts'
import type { ModelReply, Rule } from '../fakes/model-server/play.ts'
import type { RecordingPort } from './harness/recording-port.ts'
import { openTestAgent, type TestAgent } from './harness/test-agent.ts'

const envelope = (id: string, content: string) =>
  `[ORCHUB MESSAGE ${id}]\nFrom: lead\nTitle: A task\nPriority: normal\n\n${content}\n\n[END ORCHUB MESSAGE ${id}]`

/** Content of the pane: no conversation, or one that its sidebar describes. */
const HOME = /Ask anything/
const CONVERSATION = /^.*\d% used$/m

const COMMAND = '<orc-command name="send_message" to="lead">All is well.</orc-command>'

/** Until a test lets it go on, the model is at work. */
let work = Promise.withResolvers<ModelReply>()

const play: Rule[] = [
  { when: /say a command/, reply: { text: `I report.\n${COMMAND}` } },
  // Once: what was interrupted is still there in the next request.
  { when: /think for long/, times: 1, reply: () => new Promise<never>(() => {}) },
  { when: /work a while/, reply: () => work.promise },
  { when: /talk slowly/, reply: { text: 'word '.repeat(200), chunkSize: 5, chunkMs: 50 } },
  { when: /run the tests/, reply: { text: 'I run them.', toolCalls: [{ shell: 'echo tests-pass' }] } },
  {
    when: /ask a helper/,
    reply: {
      text: 'I ask.',
      toolCalls: [
        { name: 'task', input: { description: 'help', prompt: 'SUBTASK', subagent_type: 'general' } },
      ],
    },
  },
  { when: /^SUBTASK$/, reply: { text: `The helper says ${COMMAND}` } },
  {
    when: /ask the person/,
    reply: {
      text: 'A question.',
      toolCalls: [
        {
          name: 'question',
          input: {
            questions: [
              {
                question: 'Which colour?',
                header: 'Colour',
                options: [
                  { label: 'Red', description: 'r' },
                  { label: 'Blue', description: 'b' },
                ],
              },
            ],
          },
        },
      ],
    },
  },
  { toolResult: /tests-pass/, reply: { text: 'They pass.' } },
  { toolResult: /green/, reply: { text: 'So it is green.' } },
  { toolResult: /not on a Friday/, reply: { text: 'Then not.' } },
]

describe('opencode', () => {
  let testAgent: TestAgent
  let session: Session
  let port: RecordingPort
  let messages = 0
  const program = createOpencode({
    log: { warn: (fields, text) => testAgent.problems.push({ text, ...fields }) },
  })

  const authorizations = new Set<string | undefined>()
  const service = createServer((request, response) => {
    if (request.url === '/mcp') authorizations.add(request.headers.authorization)
    response.writeHead(404).end()
  })

  beforeAll(async () => {
    service.listen(0, '127.0.0.1')
    await once(service, 'listening')
    const { port: servicePort } = service.address() as AddressInfo
    testAgent = await openTestAgent({
      url: `http://127.0.0.1:${servicePort}`,
      agent: 'opencode',
      program,
      play,
      role: 'You are dev, of the crew of the Argo.',
    })
    ;({ session, port } = await testAgent.start())
    await idle()
  })
  afterAll(async () => {
    await testAgent.close()
    service.close()
  })

  const idle = () => port.until(() => session.state === 'idle', 60_000)
  const busy = () => port.until(() => session.state === 'busy')
  const nextId = () => `msg_${++messages}`
  const spoken = () => port.said.map(({ text }) => text)
  const read = (id: string) =>
    port.until(() => port.arrived.find(({ ids, state }) => state === 'read' && ids.includes(id)))

  /** The model works on it until the returned function is called. */
  async function sendWork() {
    work = Promise.withResolvers()
    const { id } = await send('work a while')
    await asks(id)
    return { id, finish: () => work.resolve({ text: 'Worked.' }) }
  }

  /** The model is asked about that message. */
  const asks = (id: string) =>
    testAgent.model.waitFor((one) => one.request?.userText.includes(`MESSAGE ${id}]`) ?? false)

  async function send(content: string) {
    await idle()
    const id = nextId()
    const arrival = await session.deliver({ text: envelope(id, content), ids: [id] })
    return { id, arrival }
  }

  it('delivers a message to the agent, and executes its command once (S1.2, C4, C25)', async () => {
    const { id, arrival } = await send('please say a command')
    expect(arrival.state).toBe('submitted')
    await read(id)
    await port.until(() => spoken().some((text) => text.includes(COMMAND)))
    await idle()
    expect(port.said).toHaveLength(1)
    expect(port.said[0]).toMatchObject({ channel: 'api', key: expect.stringMatching(/^prt_/) })
    await testAgent.shows(port, /ORCHUB MESSAGE/)
  })

  it('sends the role with every request, and the token of the agent to the service (C3)', async () => {
    expect([...authorizations]).toEqual(['Bearer orc_token_of_dev'])
    const call = testAgent.model.calls('dev').at(-1)!
    expect(call.request!.system).toContain('You are dev, of the crew of the Argo.')
    expect((await stat(join(testAgent.folder, 'opencode-password'))).mode & 0o777).toBe(0o600)
    expect(JSON.stringify(port.savedState)).not.toContain(
      await readFile(join(testAgent.folder, 'opencode-password'), 'utf8'),
    )
  })

  it('reports the context usage, relative to the window of the model (C26)', async () => {
    await port.until(() => port.used.length > 0)
    expect(port.used[0]).toMatchObject({
      model: 'scripted/scripted-model',
      contextWindow: 200_000,
      contextTokens: expect.any(Number),
      spent: { key: expect.stringMatching(/^msg_/) },
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
    ['a leading /', '/exit'],
    ['a trailing backslash', 'ends with \\'],
    ['the end of a bracketed paste', 'a\u001b[201~\rrm -rf x'],
    ['emoji and tabs', '👩‍👩‍👧‍👦\té\u0301 ｗｉｄｅ'],
    ['a file mention at the end', 'look at @x'],
  ])('delivers %s unchanged', async (_name, content) => {
    const { id, arrival } = await send(content)
    expect(arrival.state).toBe('submitted')
    await read(id)
    const call = await asks(id)
    expect(call.request!.userText).toContain(envelope(id, content))
    expect(await session.locate([id])).toMatchObject([{ at: 'submitted' }])
  })

  it('reports a message that it never got as absent', async () => {
    expect(await session.locate(['msg_999999'])).toMatchObject([{ at: 'absent' }])
  })

  it('leaves a draft in the input box untouched (field notes 4)', async () => {
    await testAgent.type(port, 'a half-typed thought')
    await testAgent.shows(port, /a half-typed thought/)
    const { id } = await send('hello there')
    await read(id)
    await idle()
    const call = await asks(id)
    expect(call.request!.userText).not.toContain('half-typed')
    await testAgent.shows(port, /a half-typed thought/)
    // A person sends it after all: the agent is busy with it, and that is seen too.
    await testAgent.press(port, 'Enter')
    await testAgent.model.waitFor((one) => one.request?.userText.includes('a half-typed thought') ?? false)
    await idle()
  })

  it('accepts no message while it is busy, and gets a notice within its turn (C2)', async () => {
    const { finish } = await sendWork()
    await busy()
    expect(await session.deliver({ text: envelope('msg_x', 'later'), ids: ['msg_x'] })).toMatchObject({
      state: 'queued',
    })
    await session.notice('[ORCHUB NOTICE] 1 message waits')
    finish()
    await testAgent.model.waitFor((one) => one.request?.userText.includes('ORCHUB NOTICE') ?? false)
    expect(port.states.at(-1)!.state).toBe('busy')
    await idle()
  })

  it('ignores the text of a subagent (C4)', async () => {
    const before = port.said.length
    await send('ask a helper')
    await testAgent.model.waitFor((one) => one.request?.userText === 'SUBTASK')
    await idle()
    expect(port.said.slice(before).some(({ text }) => text.startsWith('The helper says'))).toBe(false)
  })

  it('stops a turn, with evidence; text that was cut off is not passed on (C2, C5)', async () => {
    const { id } = await send('think for long')
    await asks(id)
    expect(session.state).toBe('busy')
    expect(await session.interrupt()).toMatchObject({ stopped: true })
    expect(session.state).toBe('idle')
    expect(port.arrived.some(({ ids, state }) => ids.includes(id) && state === 'read')).toBe(false)

    await send('talk slowly')
    await testAgent.shows(port, /word word/)
    expect(await session.interrupt()).toMatchObject({ stopped: true })
    await sleep(500)
    expect(spoken().some((text) => text.includes('word word'))).toBe(false)
  })

  it('asks for permission outside the pane, and accepts the verdict from there (ask 9)', async () => {
    await send('run the tests')
    const question = await port.until(() => port.asked.find(({ isGone }) => !isGone))
    expect(question).toMatchObject({ tool: 'bash', input: { command: 'echo tests-pass' } })
    expect(session.state).toBe('waiting_input')
    await testAgent.shows(port, /Permission required/)
    question.answer({ allow: true })
    await port.until(() => spoken().includes('They pass.'))
    await idle()
  })

  it('reports a denial with its reason to the agent, which continues (C9)', async () => {
    await send('run the tests')
    const question = await port.until(() => port.asked.find(({ isGone }) => !isGone))
    question.answer({ allow: false, comment: 'not on a Friday' })
    await port.until(() => spoken().includes('Then not.'))
    await idle()
  })

  it('closes the request when the person answers in the pane', async () => {
    await send('run the tests')
    const question = await port.until(() => port.asked.find(({ isGone }) => !isGone))
    await testAgent.shows(port, /Permission required/)
    await testAgent.press(port, 'Enter')
    await port.until(() => question.isGone)
    await idle()
  })

  it('accepts the answer to a question of the agent from outside', async () => {
    await send('ask the person')
    const question = await port.until(() => port.asked.find(({ isGone }) => !isGone))
    expect(question.tool).toBe('question')
    question.answer({ allow: true, comment: 'green' })
    await port.until(() => spoken().includes('So it is green.'))
    await idle()
  })

  it('leaves no dialog behind when a turn that asks is interrupted', async () => {
    await send('run the tests')
    const question = await port.until(() => port.asked.find(({ isGone }) => !isGone))
    await testAgent.shows(port, /Permission required/)
    expect(await session.interrupt()).toMatchObject({ stopped: true })
    expect(question.isGone).toBe(true)
    // The program draws its screen in its own time.
    await expect.poll(() => testAgent.screen(port), { timeout: 30_000 }).not.toContain('Permission required')
  })

  it('continues in another conversation that a person opens in the pane', async () => {
    const conversationsOf = (savedState: unknown) =>
      new Set(JSON.stringify(savedState).match(/"ses_[^"]+"/g)).size
    const before = conversationsOf(port.savedState)
    expect(before).toBe(1)
    await testAgent.press(port, 'C-x', 'n')
    await testAgent.shows(port, HOME)
    await testAgent.type(port, 'a new beginning')
    await testAgent.shows(port, /a new beginning/)
    await testAgent.press(port, 'Enter')
    await testAgent.model.waitFor((one) => one.request?.userText.includes('a new beginning') ?? false)
    // The model may hear of it before we do; until then its messages go into the conversation before.
    await port.until(() => conversationsOf(port.savedState) > before)
    await idle()
    const { id } = await send('and here too')
    await read(id)
    const call = testAgent.model.calls('dev').at(-1)!
    expect(call.body).toContain('a new beginning')
    expect(call.body).not.toContain('half-typed')
    expect(await session.locate(['msg_1'])).toMatchObject([{ at: 'submitted' }])
  })

  it('loses no text written while the service is down, and is found again (C25)', async () => {
    const { id, finish } = await sendWork()
    await busy()
    const before = port
    await session.leave()
    await testAgent.restartService()
    finish()
    await testAgent.shows(before, /Worked\./)
    ;({ session, port } = await testAgent.start(before.savedState))
    await port.until(() => spoken().includes('Worked.'))
    await read(id)
    await idle()
    const { arrival } = await send('and on')
    expect(arrival.state).toBe('submitted')
    await idle()
  })

  it('finds an open dialog again after a restart of the service', async () => {
    await send('run the tests')
    await port.until(() => port.asked.find(({ isGone }) => !isGone))
    const { savedState } = port
    await session.leave()
    await testAgent.restartService()
    ;({ session, port } = await testAgent.start(savedState))
    const question = await port.until(() => port.asked.find(({ isGone }) => !isGone))
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
    const { id: next } = await send('which word was it?')
    await read(next)
    const call = testAgent.model.calls('dev').at(-1)!
    expect(call.body).toContain('xylophone')
    expect(call.request!.system).toContain('You are dev, of the crew of the Argo.')
    expect(await session.locate([id])).toMatchObject([{ at: 'submitted' }])
    await idle()
  })

  it('keeps the role when the context is compacted (ask 15)', async () => {
    // The server answers before its terminal interface accepts keys.
    await testAgent.shows(port, /which word was it\?/)
    await testAgent.type(port, '/compact')
    await testAgent.shows(port, /Compact session/)
    const before = port.states.length
    await testAgent.press(port, 'Enter')
    // The turn may be over before we look.
    await port.until(() => port.states.slice(before).some(({ state }) => state === 'busy'))
    await idle()
    const { id } = await send('still there?')
    await read(id)
    expect(testAgent.model.calls('dev').at(-1)!.request!.system).toContain('of the crew of the Argo')
    expect(spoken()).not.toContain('Scripted title')
    await idle()
  })

  it('leaves nothing behind when it is stopped', async () => {
    await session.stop()
    expect(session.state).toBe('exited')
    expect(await testAgent.left()).toEqual([])
  })

  it('reports a missing conversation that should be resumed', async () => {
    const savedState = structuredClone(port.savedState) as { program: { conversations: { id: string }[] } }
    savedState.program.conversations = [
      { ...savedState.program.conversations[0]!, id: 'ses_0000000000000000000000000' },
    ]
    await expect(testAgent.start(savedState)).rejects.toThrow('ses_0000000000000000000000000')
    expect(await testAgent.left()).toEqual([])
  })

  it('does not disturb a person who opens another conversation as soon as one is shown', async () => {
    ;({ session, port } = await testAgent.start())
    await testAgent.shows(port, CONVERSATION)
    await testAgent.press(port, 'C-x', 'n')
    await testAgent.shows(port, HOME)
    await testAgent.type(port, 'a draft of my own')
    await testAgent.shows(port, /a draft of my own/)
    await sleep(3_000)
    expect(await testAgent.screen(port)).not.toMatch(CONVERSATION)
    await testAgent.press(port, 'Enter')
    await testAgent.model.waitFor((one) => one.request?.userText.includes('a draft of my own') ?? false)
    await testAgent.shows(port, CONVERSATION)
    await session.stop()
  })

  it('sent no unknown message', () => {
    expect(testAgent.problems).toEqual([])
  })
})
