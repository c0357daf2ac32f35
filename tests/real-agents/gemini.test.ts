import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createGemini } from '../../src/programs/gemini/program.ts'
import type { Rule } from '../fakes/model-server/play.ts'
import { type HookServer, startHookServer } from './harness/hook-server.ts'
import { COMMAND, createHeldReply, envelope, openTestAgent, type TestAgent } from './harness/test-agent.ts'

const ORC = join(import.meta.dirname, '../../orc')

const held = createHeldReply()

/** Without repetition, which Gemini would take for a loop. */
const MANY_WORDS = Array.from({ length: 600 }, (_, n) => `word ${n} `).join('')

const play: Rule[] = [
  { when: /say a command/, reply: { text: `I report.\n${COMMAND}` } },
  { when: /think for long/, times: 1, reply: { text: 'Thought.', delayMs: 120_000 } },
  { when: /work a while/, reply: held.reply },
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
  let dev: TestAgent
  let hookServer: HookServer

  beforeAll(async () => {
    hookServer = await startHookServer()
    const role = 'You are dev, of the crew of the Argo. Write to @lead.'
    dev = await openTestAgent({
      ...{ agent: 'gemini', program: createGemini, play, role, hookServer, bin: ORC },
    })
    await dev.start()
    await dev.idle()
  })
  afterAll(() => dev.close())

  const turnEnds = () => hookServer.hooks.filter(({ event }) => event.hook_event_name === 'AfterAgent').length

  it('delivers a message to the agent, and executes its command once (S1.2, C4, C25)', async () => {
    const id = await dev.submit('please say a command')
    await dev.read(id)
    await dev.port.until(() => dev.spoken().some((text) => text.includes(COMMAND)))
    await dev.idle()
    expect(dev.port.said).toHaveLength(1)
    expect(dev.port.said[0]).toMatchObject({ channel: 'transcript' })
  })

  it('sends the role with every request, and the token of the agent to the service (C3)', async () => {
    expect(dev.model.calls('dev').at(-1)!.body).toContain('You are dev, of the crew of the Argo. Write to @')
    expect(dev.model.calls('dev').at(-1)!.body).not.toContain('Import failed')
    expect(new Set(hookServer.hooks.map(({ authorization }) => authorization))).toEqual(
      new Set(['Bearer orc_token_of_dev']),
    )
  })

  it('lets the agent use the tools of the service without a dialog', async () => {
    await dev.submit('tell the lead')
    await dev.port.until(() => dev.spoken().includes('The tool is done.'))
    await dev.idle()
    expect(hookServer.messages).toEqual([{ to: 'lead', authorization: 'Bearer orc_token_of_dev' }])
    expect(dev.port.asked).toEqual([])
  })

  it('reports the context usage (C26)', () => {
    expect(dev.port.used[0]).toMatchObject({
      contextTokens: expect.any(Number),
      contextWindow: 1_048_576,
      spent: { cacheWrite: 0 },
    })
  })

  it('exchanges ten messages, each read once and in order (C25)', async () => {
    await dev.exchangeTen()
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
  ])('delivers %s unchanged', (_name, content) => dev.deliverUnchanged(content))

  it('passes the name of a file as a name, and not as that file', async () => {
    const id = await dev.submit('look at @x')
    await dev.read(id)
    expect((await dev.callAbout(id)).request!.userText).toContain(envelope(id, 'look at \\@x'))
  })

  it('removes the end of a bracketed paste from a text, so that none of it is typed', async () => {
    const id = await dev.submit('a\u001b[201~\rrm -rf x')
    expect((await dev.callAbout(id)).request!.userText).not.toContain('\u001b')
    await dev.read(id)
  })

  it('reports a message that it never got as absent', async () => {
    await dev.idle()
    // The screen may still be drawn, and then its content says nothing.
    await expect.poll(() => dev.session.locate(['msg_999999'])).toMatchObject([{ at: 'absent' }])
  })

  it('waits until a draft is gone (field notes 4)', async () => {
    await dev.idle()
    await dev.type('a half-typed thought')
    await dev.shows(/a half-typed thought/)
    expect(await dev.session.deliver({ text: envelope('msg_d', 'hello'), ids: ['msg_d'] })).toMatchObject({
      state: 'queued',
    })
    await dev.shows(/> a half-typed thought/)
    // A person sends it after all: the agent is busy with it, and that is seen too.
    await dev.press('Enter')
    await dev.callWith('a half-typed thought')
    await dev.idle()
  })

  it('accepts no message while it is busy, and gets a notice within its turn (C2)', async () => {
    const id = await dev.submit('look around')
    await dev.callAbout(id)
    expect(await dev.session.deliver({ text: 'later', ids: [] })).toMatchObject({ state: 'queued' })
    await dev.session.notice('[ORCHUB NOTICE] 1 message waits')
    const asked = await dev.openQuestion()
    await dev.shows(/Allow once/)
    asked.answer({ allow: true })
    await dev.model.waitFor((one) => one.body.includes('ORCHUB NOTICE'))
    await dev.idle()
  })

  it('asks for permission outside the pane, and accepts the verdict from there (ask 9)', async () => {
    const asked = await dev.askFor('run the tests')
    expect(asked).toMatchObject({ tool: 'exec', input: { command: 'touch tests-ran' } })
    expect(dev.session.state).toBe('waiting_input')
    await dev.shows(/Allow once/)
    asked.answer({ allow: true })
    await dev.port.until(() => asked.isGone)
    await dev.idle()
    expect(await readFile(join(dev.cwd, 'tests-ran'), 'utf8')).toBe('')
  })

  it('closes the request when the person answers in the pane', async () => {
    const asked = await dev.askFor('run the tests')
    await dev.shows(/Allow once/)
    await dev.press('Enter')
    await dev.port.until(() => asked.isGone)
    await dev.idle()
  })

  it('reports a denial to the agent in its next turn (C9)', async () => {
    const asked = await dev.askFor('run the tests')
    await dev.shows(/Allow once/)
    asked.answer({ allow: false, comment: 'not on a Friday' })
    await dev.idle()
    expect(asked.isGone).toBe(true)
    await dev.submit('what now?')
    await dev.model.waitFor((one) => one.body.includes('not on a Friday'))
    await dev.idle()
  })

  it('stops a turn, with evidence; text that was cut off is not passed on (C2, C5)', async () => {
    const id = await dev.submit('think for long')
    await dev.callAbout(id)
    expect(await dev.session.interrupt()).toMatchObject({ stopped: true })
    const before = dev.port.said.length
    await dev.callAbout(await dev.submit('talk slowly'))
    await dev.shows(/word 3 word 4/)
    expect(await dev.session.interrupt()).toMatchObject({ stopped: true })
    await sleep(1_000)
    expect(dev.port.said.slice(before)).toEqual([])
  })

  it('stops a turn that asks for permission, and leaves no dialog behind', async () => {
    const asked = await dev.askFor('run the tests')
    await dev.shows(/Allow once/)
    expect(await dev.session.interrupt()).toMatchObject({ stopped: true })
    expect(asked.isGone).toBe(true)
    await expect.poll(() => dev.screen()).not.toContain('Allow once')
  })

  it('is idle again after an error of the model', async () => {
    const before = dev.port.states.length
    await dev.submit('fail now')
    await dev.port.until(() => dev.port.states.slice(before).some(({ state }) => state === 'busy'))
    await dev.idle()
    await dev.submit('and on')
    await dev.idle()
  })

  it('waits for a person when it suspects a loop in its answer', async () => {
    await dev.submit('repeat yourself')
    await dev.port.until(() => dev.session.state === 'waiting_input')
    await dev.shows(/potential loop was detected/)
    await dev.press('Enter')
    await dev.idle()
  })

  it('repeats no text, however often its transcript is rewritten (C25)', () => {
    const keys = dev.port.said.map(({ key }) => key)
    expect(new Set(keys).size).toBe(keys.length)
    expect(dev.spoken().filter((text) => text.includes(COMMAND))).toHaveLength(1)
  })

  it('loses no text written while the service is down, and is found again (C25)', async () => {
    const id = await dev.submit('work a while')
    await dev.callAbout(id)
    const savedState = await dev.restartService()
    const ends = turnEnds()
    held.letGo({ text: 'Worked.' })
    await expect.poll(turnEnds).toBe(ends + 1)
    await dev.start(savedState)
    await dev.port.until(() => dev.spoken().includes('Worked.'))
    await dev.read(id)
    await dev.idle()
    expect(dev.spoken().filter((text) => text.includes(COMMAND))).toEqual([])
    await dev.submit('and on')
    await dev.idle()
  })

  it('keeps the role when the context is compressed (ask 15)', async () => {
    const before = dev.model.requests.length
    await dev.enter('/compress')
    await dev.shows(/Chat history compressed/)
    const id = await dev.submit('still there?')
    await dev.read(id)
    expect(dev.model.requests.length).toBeGreaterThan(before + 1)
    expect((await dev.callAbout(id)).body).toContain('of the crew of the Argo')
    await dev.idle()
  })

  it('resumes its conversation after everything was killed, with its role (asks 10, 15)', async () => {
    const id = await dev.resumeAfterKill()
    expect((await dev.recallWord(id)).body).toContain('of the crew of the Argo')
    expect(dev.spoken().filter((text) => text.includes(COMMAND))).toEqual([])
  })

  it('leaves nothing behind when it is stopped', async () => {
    await dev.session.stop()
    expect(dev.session.state).toBe('exited')
    expect(await dev.left()).toEqual([])
  })

  it('reports a missing conversation that should be resumed', async () => {
    const savedState = structuredClone(dev.port.savedState) as {
      program: { transcript: string; sessionId: string }
    }
    savedState.program.transcript = '/nowhere/session.jsonl'
    await expect(dev.start(savedState)).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: expect.stringContaining(savedState.program.sessionId),
    })
  })

  it('sent no unknown message', () => {
    expect(dev.problems).toEqual([])
  })
})
