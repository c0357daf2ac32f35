import { existsSync } from 'node:fs'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createCodex } from '../../src/programs/codex/program.ts'
import { type Player, playerOf } from '../fakes/model-server/play.ts'
import { startHookServer } from './harness/hook-server.ts'
import {
  COMMAND,
  createHeldReply,
  envelope,
  openTestAgent,
  ROLE,
  type TestAgent,
} from './harness/test-agent.ts'

/** Writes outside its sandbox. */
const PATCH = `apply_patch <<'EOF'
*** Begin Patch
*** Add File: /usr/orchub-test.txt
+hello
*** End Patch
EOF`

const held = createHeldReply()

const rules = playerOf([
  { when: /say a command/, reply: { thinking: `Shall I? ${COMMAND}`, text: `I report.\n${COMMAND}` } },
  { when: /think for long/, reply: { text: 'Thought.', delayMs: 120_000 } },
  { when: /work a while/, reply: held.reply },
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
  let dev: TestAgent

  beforeAll(async () => {
    dev = await openTestAgent({ agent: 'codex', program: createCodex, play, role: ROLE })
    await dev.start()
    await dev.idle()
  })
  afterAll(() => dev.close())

  it('reports that the agent got nothing before its first turn (C25)', async () => {
    expect(await dev.session.locate(['msg_1'])).toMatchObject([{ at: 'absent' }])
  })

  it('delivers a message to the agent, and executes its command once (S1.2, C4, C25)', async () => {
    const id = await dev.submit('please say a command')
    await dev.read(id)
    await dev.port.until(() => dev.spoken().some((text) => text.includes(COMMAND)))
    await dev.idle()
    expect(dev.port.said).toEqual([
      { text: `I report.\n${COMMAND}`, channel: 'api', key: expect.stringMatching(/^codex:/) },
    ])
    await dev.shows(/ORCHUB MESSAGE/)
  })

  it('passes the role to the model word for word, and never writes the token to disk', async () => {
    expect(dev.model.calls('dev').at(-1)!.request!.system).toContain(ROLE)
    const script = await readFile(join(dev.folder, 'codex.sh'), 'utf8')
    expect(script).toContain('ORC_TOKEN')
    expect(script).not.toContain('orc_token_of_dev')
    expect(JSON.stringify(dev.port.savedState)).not.toContain('orc_token_of_dev')
  })

  it('allows only the user to use the socket of the conversation', async () => {
    const { socket } = (dev.port.savedState as { program: { socket: string } }).program
    expect((await stat(socket)).mode & 0o077).toBe(0)
  })

  it('reports the context usage, relative to the window of the model (C26)', async () => {
    await dev.port.until(() => dev.port.used.length > 0)
    expect(dev.port.used[0]).toMatchObject({
      model: 'scripted',
      contextWindow: expect.any(Number),
      contextTokens: expect.any(Number),
      spent: { key: expect.stringMatching(/^codex:/) },
    })
  })

  it('exchanges ten messages, each read once and in order (C25)', async () => {
    await dev.exchangeTen()
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
  ])('delivers %s unchanged', (_name, content) => dev.deliverUnchanged(content))

  it.each([
    ['the end of a bracketed paste', 'a\u001b[201~\rb', 'a[201~b'],
    ['half a surrogate pair and NUL', 'a\ud83d\u0000b', 'a\ufffdb'],
  ])('delivers %s without control characters', async (_name, content, carried) => {
    const id = await dev.submit(content)
    await dev.read(id)
    const call = await dev.callAbout(id)
    expect(call.request!.userText).toContain(envelope(id, carried))
  })

  it('reports a message that it never got as absent', async () => {
    await dev.idle()
    expect(await dev.session.locate(['msg_999999'])).toMatchObject([{ at: 'absent' }])
  })

  it('leaves a draft in the input box untouched (field notes 4)', async () => {
    await dev.idle()
    await dev.type('a half-typed thought')
    await dev.shows(/a half-typed thought/)
    const { id } = await dev.send('hello there')
    await dev.read(id)
    await dev.idle()
    const call = await dev.callAbout(id)
    expect(call.request!.userText).not.toContain('half-typed')
    await dev.shows(/› a half-typed thought/)
    // A person sends it after all: the agent is busy with it, and that is seen too.
    const before = dev.port.states.length
    await dev.press('Enter')
    await dev.callWith('a half-typed thought')
    await dev.port.until(() => dev.port.states.slice(before).some(({ state }) => state === 'busy'))
    await dev.idle()
  })

  it('does not treat the output of a command as text of the agent (C4)', async () => {
    const before = dev.port.said.length
    await dev.send('print it')
    await dev.port.until(() => dev.port.said.length >= before + 2)
    await dev.idle()
    expect(dev.port.said.slice(before).some(({ text }) => text.includes(COMMAND))).toBe(false)
  })

  it('accepts no message while it is busy, and gets a notice within its turn (C2)', async () => {
    const { id: working } = await dev.send('work a while')
    await dev.callAbout(working)
    expect(await dev.session.deliver({ text: envelope('msg_x', 'later'), ids: ['msg_x'] })).toMatchObject({
      state: 'queued',
    })
    await dev.session.notice('[ORCHUB NOTICE] 1 message waits')
    held.letGo({ text: 'Worked.' })
    await dev.callWith('ORCHUB NOTICE')
    expect(dev.port.states.at(-1)!.state).toBe('busy')
    await dev.idle()
  })

  it('stops a turn, with evidence; text that was cut off is not passed on (C2, C5)', async () => {
    const { id } = await dev.send('think for long')
    await dev.busy()
    expect(await dev.session.interrupt()).toMatchObject({
      stopped: true,
      evidence: expect.stringContaining('interrupted'),
    })
    await dev.idle()
    expect(dev.hasRead(id)).toBe(false)

    await dev.send('talk slowly')
    await dev.shows(/word word/)
    expect(await dev.session.interrupt()).toMatchObject({ stopped: true })
    await sleep(500)
    expect(dev.spoken().some((text) => text.includes('word word'))).toBe(false)
    expect(await dev.session.interrupt()).toMatchObject({
      stopped: true,
      evidence: expect.stringContaining('idle'),
    })
  })

  it('also stops the command of the turn, which Codex would leave running (ask 11)', async () => {
    await dev.send('sleep for long')
    await until(async () => (await commandsLike('sleep 331')).length > 0)
    expect(dev.session.state).toBe('busy')
    expect(await dev.session.interrupt()).toMatchObject({ stopped: true })
    await until(async () => (await commandsLike('sleep 331')).length === 0)
    await dev.idle()
  })

  it('continues after a failed turn, which the agent has not read', async () => {
    const before = dev.port.states.length
    const id = await dev.submit('fail now')
    await dev.port.until(() =>
      dev.port.states.slice(before).some(({ evidence }) => evidence.includes('It is broken')),
    )
    await dev.idle()
    expect(dev.hasRead(id)).toBe(false)
    const { id: next } = await dev.send('and again')
    await dev.read(next)
    await dev.idle()
  })

  it('asks for permission outside the pane, and accepts the verdict from there (ask 9)', async () => {
    const question = await dev.askFor('run the tests')
    expect(question).toMatchObject({
      tool: 'shell',
      input: { command: expect.stringContaining('echo tests-pass') },
    })
    await dev.port.until(() => dev.session.state === 'waiting_input')
    await dev.shows(/Would you like to run/)
    question.answer({ allow: true })
    await dev.port.until(() => dev.spoken().includes('They pass.'))
    await dev.idle()
    expect(question.isGone).toBe(false)
  })

  it('reports a denial with its reason to the agent, which continues (C9)', async () => {
    const question = await dev.askFor('run the tests')
    question.answer({ allow: false, comment: 'not on a Friday' })
    await dev.callWith('not on a Friday')
    await dev.idle()
  })

  it('closes the request when the person answers in the pane', async () => {
    const question = await dev.askFor('run the tests')
    await dev.shows(/Would you like to run/)
    await dev.press('y')
    await dev.port.until(() => question.isGone)
    await dev.port.until(() => dev.spoken().at(-1) === 'They pass.')
    await dev.idle()
  })

  it('shows the person what a patch would change', async () => {
    const question = await dev.askFor('patch the machine')
    expect(question).toMatchObject({
      tool: 'apply_patch',
      input: { changes: [{ path: '/usr/orchub-test.txt', diff: 'hello\n' }] },
    })
    question.answer({ allow: false })
    await dev.idle()
    expect(existsSync('/usr/orchub-test.txt')).toBe(false)
  })

  it('ignores the text of a subagent, and does not adopt its thread (C4)', async () => {
    const before = dev.port.said.length
    await dev.send('ask a helper')
    await dev.model.waitFor((one) => one.request?.userText === 'SUBTASK' && one.state === 'answered')
    await sleep(300)
    await dev.idle()
    expect(dev.port.said.slice(before).some(({ text }) => text.startsWith('The helper says'))).toBe(false)
    const { id } = await dev.send('are you still you?')
    await dev.read(id)
    expect((await dev.callAbout(id)).body).toContain('half-typed')
    await dev.idle()
  })

  it('leaves no dialog behind when a turn that asks is interrupted', async () => {
    const question = await dev.askFor('run the tests')
    await dev.shows(/Would you like to run/)
    expect(await dev.session.interrupt()).toMatchObject({ stopped: true })
    await dev.port.until(() => question.isGone)
    await dev.hides(/Would you like to run/)
    await dev.idle()
  })

  it('continues in another conversation that a person opens in the pane', async () => {
    await dev.enter('/new')
    await dev.hides(/ORCHUB MESSAGE/)
    await dev.enter('a new beginning')
    await dev.callWith('a new beginning')
    await dev.idle()
    const { id } = await dev.send('and here too')
    await dev.read(id)
    const call = await dev.callAbout(id)
    expect(call.body).toContain('a new beginning')
    expect(call.body).not.toContain('half-typed')
    expect(call.request!.system).toContain(ROLE)
    expect(await dev.session.locate(['msg_1'])).toMatchObject([{ at: 'submitted' }])
    await dev.idle()
  })

  it('loses no text written while the service is down, and is found again (C25)', async () => {
    const { id } = await dev.send('work a while')
    await dev.callAbout(id)
    await dev.restartService()
    held.letGo({ text: 'Worked.' })
    const { rollout } = (dev.port.savedState as WithThreads).program.threads.at(-1)!
    await until(async () => /"task_complete"[^\n]*"Worked\."/.test(await readFile(rollout!, 'utf8')))
    expect(dev.port.said.at(-1)!.text).not.toBe('Worked.')
    await dev.start(dev.port.savedState)
    await dev.port.until(() => dev.spoken().includes('Worked.'))
    await dev.read(id)
    await dev.idle()
    expect(dev.port.said).toHaveLength(1)
    await dev.submit('and on')
    await dev.idle()
  })

  it.each([0, 1, 3, 10, 30, 100])(
    'knows what became of a message when the service is killed %i ms into its delivery (C25)',
    async (ms) => {
      await dev.idle()
      const id = dev.nextId()
      const turn = { text: envelope(id, 'a dangerous moment'), ids: [id] }
      const cut = dev.session.deliver(turn)
      await sleep(ms)
      await dev.restartService()
      expect((await cut).state).not.toBe('read')
      await dev.start(dev.port.savedState)
      await dev.idle()
      const at = (await dev.session.locate([id]))[0]?.at
      expect(at).not.toBe('unknown')
      if (at === 'absent') await dev.session.deliver(turn)
      await dev.idle()
      const { id: last } = await dev.send('and on')
      await dev.idle()
      const told = (await dev.callAbout(last)).body.split(`[ORCHUB MESSAGE ${id}]`).length - 1
      expect(told).toBe(1)
    },
  )

  it('is found in the middle of a turn, which can be stopped', async () => {
    const { id } = await dev.send('think for long')
    await dev.busy()
    await dev.start(await dev.restartService())
    await dev.busy()
    await dev.port.until(() =>
      dev.port.arrived.some(({ ids, state }) => ids.includes(id) && state === 'submitted'),
    )
    expect(await dev.session.interrupt()).toMatchObject({ stopped: true })
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
    expect(dev.port.said).toEqual([])
    expect((await dev.recallWord(id)).request!.system).toContain(ROLE)
  })

  it('keeps the role when the context is compacted (ask 15)', async () => {
    const before = dev.port.states.length
    await dev.enter('/compact')
    await dev.port.until(() => dev.port.states.slice(before).some(({ state }) => state === 'busy'))
    await dev.idle()
    const { id } = await dev.send('still there?')
    await dev.read(id)
    const call = await dev.callAbout(id)
    expect(call.request!.system).toContain(ROLE)
    expect(call.body).not.toContain('half-typed')
    await dev.idle()
  })

  it('ends the server of the conversation when a person quits in the middle of a turn', async () => {
    await dev.send('sleep for long')
    await until(async () => (await commandsLike('sleep 331')).length > 0)
    const { savedState } = dev.port
    // The first stops the turn, the second quits at the prompt.
    await dev.shows(/esc to interrupt/)
    await dev.press('C-c')
    await dev.hides(/esc to interrupt/)
    await dev.press('C-c')
    await dev.port.until(() => dev.session.state === 'exited')
    await until(async () => (await dev.left()).length === 0)
    await dev.start(savedState)
    await dev.idle()
  })

  it('ends when the server of the conversation is killed', async () => {
    const [server] = await commandsLike('app-server')
    process.kill(server!, 'SIGKILL')
    await dev.port.until(() => dev.session.state === 'exited')
    await dev.start(dev.port.savedState)
    await dev.idle()
  })

  it('leaves nothing behind when it is stopped in the middle of a turn', async () => {
    await dev.send('sleep for long')
    await until(async () => (await commandsLike('sleep 331')).length > 0)
    await dev.session.stop()
    expect(dev.session.state).toBe('exited')
    expect(await dev.left()).toEqual([])
  })

  it('reports a missing conversation that should be resumed', async () => {
    const wrong = '01a1ddf2-fe46-7dd3-b140-31f5ccc49999'
    const savedState = structuredClone(dev.port.savedState) as WithThreads
    const [thread] = savedState.program.threads
    savedState.program.threads = [{ ...thread!, id: wrong }]
    const refusal = { code: 'NOT_FOUND', message: expect.stringContaining(wrong) }
    await expect(dev.start(savedState)).rejects.toMatchObject(refusal)
    savedState.program.threads = [{ ...thread!, id: wrong, rollout: `${thread!.rollout}.gone` }]
    await expect(dev.start(savedState)).rejects.toMatchObject(refusal)
  })

  it('sent no unknown message', () => {
    expect(dev.problems).toEqual([])
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
    for (const pid of await dev.left()) {
      const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
      if (line.replaceAll('\0', ' ').includes(text) && !line.startsWith('/bin/sh')) found.push(pid)
    }
    return found
  }
})

describe('codex at its start', () => {
  it.each([
    ['a configuration that it cannot read', { args: ['-c', 'sandbox_mode="nonsense"'] }, /nonsense/],
    ['an argument that it does not know', { args: ['--nonsense'] }, /nonsense/],
  ])('reports why it ended: %s', async (_name, settings, why) => {
    const dev = await openTestAgent({ agent: 'codex', program: createCodex, play, role: ROLE, settings })
    try {
      await expect(dev.start()).rejects.toMatchObject({
        code: 'PROGRAM_FAILED',
        hint: expect.stringMatching(why),
      })
    } finally {
      await dev.close()
    }
  })

  it('follows its settings, trusts the folder if configured, and calls the tools of the team without asking', async () => {
    const hookServer = await startHookServer()
    const settings = { model: 'other', sandbox: 'read-only', approval_policy: 'never', trust_folder: true }
    const dev = await openTestAgent({
      ...{ agent: 'codex', program: createCodex, play, role: ROLE, settings, hookServer },
    })
    try {
      const config = join(dev.home.env.HOME!, '.codex', 'config.toml')
      await writeFile(config, (await readFile(config, 'utf8')).replace(/^\[projects[^[]*/m, ''))
      await dev.start()
      await dev.port.until(() => dev.session.state === 'idle')
      await dev.session.deliver({ text: envelope('msg_1', 'use the tool'), ids: ['msg_1'] })
      await dev.port.until(() => dev.port.said.some(({ text }) => text === 'It is queued.'))
      expect(dev.port.asked).toEqual([])
      expect(hookServer.messages).toEqual([{ to: 'lead', authorization: 'Bearer orc_token_of_dev' }])
      expect(dev.model.calls('dev')[0]!.request!.model).toBe('other')
      const { rollout } = (dev.port.savedState as WithThreads).program.threads[0]!
      const records = await readFile(rollout!, 'utf8')
      expect(records).toContain('"approval_policy":"never"')
      expect(records).toContain('"sandbox_policy":{"type":"read-only"')
      expect(await readFile(config, 'utf8')).not.toContain('[projects')
      await dev.session.stop()
      expect(await dev.left()).toEqual([])
    } finally {
      await dev.close()
    }
  })
})
