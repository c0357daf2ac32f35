import { once } from 'node:events'
import { readFile, stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createOpencode } from '../../src/programs/opencode/program.ts'
import type { ModelReply, Rule } from '../fakes/model-server/play.ts'
import { COMMAND, envelope, openTestAgent, type TestAgent } from './harness/test-agent.ts'

const ROLE = 'You are dev, of the crew of the Argo.'

/** Content of the pane: no conversation, or one that its sidebar describes. */
const HOME = /Ask anything/
const CONVERSATION = /^.*\d% used$/m

/** The model works until a test resolves this. */
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
  let dev: TestAgent
  const authorizations = new Set<string | undefined>()
  const service = createServer((request, response) => {
    if (request.url === '/mcp') authorizations.add(request.headers.authorization)
    response.writeHead(404).end()
  })

  beforeAll(async () => {
    service.listen(0, '127.0.0.1')
    await once(service, 'listening')
    const { port: servicePort } = service.address() as AddressInfo
    dev = await openTestAgent({
      url: `http://127.0.0.1:${servicePort}`,
      ...{ agent: 'opencode', program: createOpencode, play, role: ROLE },
    })
    await dev.start()
    await dev.idle()
  })
  afterAll(async () => {
    await dev.close()
    service.close()
  })

  /** The model works on it until the returned function is called. */
  async function sendWork() {
    work = Promise.withResolvers()
    const { id } = await dev.send('work a while')
    await dev.callAbout(id)
    return { id, finish: () => work.resolve({ text: 'Worked.' }) }
  }

  it('delivers a message to the agent, and executes its command once (S1.2, C4, C25)', async () => {
    const id = await dev.submit('please say a command')
    await dev.read(id)
    await dev.port.until(() => dev.spoken().some((text) => text.includes(COMMAND)))
    await dev.idle()
    expect(dev.port.said).toHaveLength(1)
    expect(dev.port.said[0]).toMatchObject({ channel: 'api', key: expect.stringMatching(/^prt_/) })
    await dev.shows(/ORCHUB MESSAGE/)
  })

  it('sends the role with every request, and the token of the agent to the service (C3)', async () => {
    expect([...authorizations]).toEqual(['Bearer orc_token_of_dev'])
    const call = dev.model.calls('dev').at(-1)!
    expect(call.request!.system).toContain(ROLE)
    expect((await stat(join(dev.folder, 'opencode-password'))).mode & 0o777).toBe(0o600)
    expect(JSON.stringify(dev.port.savedState)).not.toContain(
      await readFile(join(dev.folder, 'opencode-password'), 'utf8'),
    )
  })

  it('reports the context usage, relative to the window of the model (C26)', async () => {
    await dev.port.until(() => dev.port.used.length > 0)
    expect(dev.port.used[0]).toMatchObject({
      model: 'scripted/scripted-model',
      contextWindow: 200_000,
      contextTokens: expect.any(Number),
      spent: { key: expect.stringMatching(/^msg_/) },
    })
  })

  it('exchanges ten messages, each read once and in order (C25)', async () => {
    await dev.exchangeTen()
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
  ])('delivers %s unchanged', (_name, content) => dev.deliverUnchanged(content))

  it('reports a message that it never got as absent', async () => {
    expect(await dev.session.locate(['msg_999999'])).toMatchObject([{ at: 'absent' }])
  })

  it('leaves a draft in the input box untouched (field notes 4)', async () => {
    await dev.type('a half-typed thought')
    await dev.shows(/a half-typed thought/)
    const { id } = await dev.send('hello there')
    await dev.read(id)
    await dev.idle()
    const call = await dev.callAbout(id)
    expect(call.request!.userText).not.toContain('half-typed')
    await dev.shows(/a half-typed thought/)
    // A person sends it after all: the agent is busy with it, and that is seen too.
    await dev.press('Enter')
    await dev.callWith('a half-typed thought')
    await dev.idle()
  })

  it('accepts no message while it is busy, and gets a notice within its turn (C2)', async () => {
    const { finish } = await sendWork()
    await dev.busy()
    expect(await dev.session.deliver({ text: envelope('msg_x', 'later'), ids: ['msg_x'] })).toMatchObject({
      state: 'queued',
    })
    await dev.session.notice('[ORCHUB NOTICE] 1 message waits')
    finish()
    await dev.callWith('ORCHUB NOTICE')
    expect(dev.port.states.at(-1)!.state).toBe('busy')
    await dev.idle()
  })

  it('ignores the text of a subagent (C4)', async () => {
    const before = dev.port.said.length
    await dev.send('ask a helper')
    await dev.model.waitFor((one) => one.request?.userText === 'SUBTASK')
    await dev.idle()
    expect(dev.port.said.slice(before).some(({ text }) => text.startsWith('The helper says'))).toBe(false)
  })

  it('stops a turn, with evidence; text that was cut off is not passed on (C2, C5)', async () => {
    const { id } = await dev.send('think for long')
    await dev.callAbout(id)
    expect(dev.session.state).toBe('busy')
    expect(await dev.session.interrupt()).toMatchObject({ stopped: true })
    expect(dev.session.state).toBe('idle')
    expect(dev.hasRead(id)).toBe(false)

    await dev.send('talk slowly')
    await dev.shows(/word word/)
    expect(await dev.session.interrupt()).toMatchObject({ stopped: true })
    await sleep(500)
    expect(dev.spoken().some((text) => text.includes('word word'))).toBe(false)
  })

  it('asks for permission outside the pane, and accepts the verdict from there (ask 9)', async () => {
    const question = await dev.askFor('run the tests')
    expect(question).toMatchObject({ tool: 'bash', input: { command: 'echo tests-pass' } })
    expect(dev.session.state).toBe('waiting_input')
    await dev.shows(/Permission required/)
    question.answer({ allow: true })
    await dev.port.until(() => dev.spoken().includes('They pass.'))
    await dev.idle()
  })

  it('reports a denial with its reason to the agent, which continues (C9)', async () => {
    const question = await dev.askFor('run the tests')
    question.answer({ allow: false, comment: 'not on a Friday' })
    await dev.port.until(() => dev.spoken().includes('Then not.'))
    await dev.idle()
  })

  it('closes the request when the person answers in the pane', async () => {
    const question = await dev.askFor('run the tests')
    await dev.shows(/Permission required/)
    await dev.press('Enter')
    await dev.port.until(() => question.isGone)
    await dev.idle()
  })

  it('accepts the answer to a question of the agent from outside', async () => {
    const question = await dev.askFor('ask the person')
    expect(question.tool).toBe('question')
    question.answer({ allow: true, comment: 'green' })
    await dev.port.until(() => dev.spoken().includes('So it is green.'))
    await dev.idle()
  })

  it('leaves no dialog behind when a turn that asks is interrupted', async () => {
    const question = await dev.askFor('run the tests')
    await dev.shows(/Permission required/)
    expect(await dev.session.interrupt()).toMatchObject({ stopped: true })
    expect(question.isGone).toBe(true)
    // The program draws its screen in its own time.
    await expect.poll(() => dev.screen(), { timeout: 30_000 }).not.toContain('Permission required')
  })

  it('continues in another conversation that a person opens in the pane', async () => {
    const conversationsOf = (savedState: unknown) =>
      new Set(JSON.stringify(savedState).match(/"ses_[^"]+"/g)).size
    const before = conversationsOf(dev.port.savedState)
    expect(before).toBe(1)
    await dev.press('C-x', 'n')
    await dev.shows(HOME)
    await dev.type('a new beginning')
    await dev.shows(/a new beginning/)
    await dev.press('Enter')
    await dev.callWith('a new beginning')
    // The model may hear of it before we do; until then its messages go into the conversation before.
    await dev.port.until(() => conversationsOf(dev.port.savedState) > before)
    await dev.idle()
    const { id } = await dev.send('and here too')
    await dev.read(id)
    const call = dev.model.calls('dev').at(-1)!
    expect(call.body).toContain('a new beginning')
    expect(call.body).not.toContain('half-typed')
    expect(await dev.session.locate(['msg_1'])).toMatchObject([{ at: 'submitted' }])
  })

  it('loses no text written while the service is down, and is found again (C25)', async () => {
    const { id, finish } = await sendWork()
    await dev.busy()
    await dev.restartService()
    finish()
    await dev.shows(/Worked\./)
    await dev.start(dev.port.savedState)
    await dev.port.until(() => dev.spoken().includes('Worked.'))
    await dev.read(id)
    await dev.idle()
    await dev.submit('and on')
    await dev.idle()
  })

  it('finds an open dialog again after a restart of the service', async () => {
    await dev.askFor('run the tests')
    await dev.start(await dev.restartService())
    const question = await dev.openQuestion()
    await dev.port.until(() => dev.session.state === 'waiting_input')
    question.answer({ allow: true })
    await dev.port.until(() => dev.spoken().includes('They pass.'))
    await dev.idle()
  })

  it('resumes its conversation after everything was killed, with its role (asks 10, 15)', async () => {
    const id = await dev.resumeAfterKill()
    expect((await dev.recallWord(id)).request!.system).toContain(ROLE)
  })

  it('keeps the role when the context is compacted (ask 15)', async () => {
    // The server answers before its terminal interface accepts keys.
    await dev.shows(/which word was it\?/)
    await dev.type('/compact')
    await dev.shows(/Compact session/)
    const before = dev.port.states.length
    await dev.press('Enter')
    // The turn may be over before we look.
    await dev.port.until(() => dev.port.states.slice(before).some(({ state }) => state === 'busy'))
    await dev.idle()
    const { id } = await dev.send('still there?')
    await dev.read(id)
    expect(dev.model.calls('dev').at(-1)!.request!.system).toContain(ROLE)
    expect(dev.spoken()).not.toContain('Scripted title')
    await dev.idle()
  })

  it('leaves nothing behind when it is stopped', async () => {
    await dev.session.stop()
    expect(dev.session.state).toBe('exited')
    expect(await dev.left()).toEqual([])
  })

  it('reports a missing conversation that should be resumed', async () => {
    const savedState = structuredClone(dev.port.savedState) as {
      program: { conversations: { id: string }[] }
    }
    savedState.program.conversations = [
      { ...savedState.program.conversations[0]!, id: 'ses_0000000000000000000000000' },
    ]
    await expect(dev.start(savedState)).rejects.toThrow('ses_0000000000000000000000000')
    expect(await dev.left()).toEqual([])
  })

  it('does not disturb a person who opens another conversation as soon as one is shown', async () => {
    await dev.start()
    await dev.shows(CONVERSATION)
    await dev.press('C-x', 'n')
    await dev.shows(HOME)
    await dev.type('a draft of my own')
    await dev.shows(/a draft of my own/)
    await sleep(3_000)
    expect(await dev.screen()).not.toMatch(CONVERSATION)
    await dev.press('Enter')
    await dev.callWith('a draft of my own')
    await dev.shows(CONVERSATION)
    await dev.session.stop()
  })

  it('sent no unknown message', () => {
    expect(dev.problems).toEqual([])
  })
})
