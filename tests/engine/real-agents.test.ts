import { afterEach, describe, expect, it } from 'vitest'
import type { ConfigInput } from '../../src/config.ts'
import { AppError } from '../../src/model/errors.ts'
import { readSession } from '../../src/store/sessions.ts'
import { createPuppets, type Puppets } from '../fakes/puppet-runtime.ts'
import { type Board, openBoard } from './harness.ts'

let board: Board
let puppets: Puppets
afterEach(() => board.close())

const TEAM = {
  agents: {
    Master: {},
    Worker: { program: 'any', parent: 'Master', deliver: 'together' },
  },
  permissions: { urgent: 'allow' },
} satisfies ConfigInput

async function open(input: Omit<ConfigInput, 'store' | 'service'> = TEAM) {
  puppets = createPuppets()
  board = await openBoard(input, { runtimes: [puppets] })
  await board.clock.advance(0)
}

const send = (title: string, fields: Record<string, unknown> = {}) =>
  board.say('Master', 'send_message', { to: 'Worker', title, content: `about ${title}`, ...fields })
const worker = () => puppets.of('Worker')
const settle = () => board.clock.advance(0)
const deliveries = async () => (await board.mailOf('Worker')).map((mail) => mail.delivery)
const command = (name: string, content: string, more = '') =>
  `<orc-command name="send_message" to="Master" title="${name}"${more}>${content}</orc-command>`

describe('a message to an agent in a terminal', () => {
  it('waits until the agent is idle, then goes up the ladder by evidence only (C2, C27)', async () => {
    await open()
    await send('One')
    await settle()
    expect(worker().turns).toEqual([])
    worker().become('idle')
    await settle()
    expect(worker().turns).toMatchObject([{ ids: ['msg_1'] }])
    expect(await deliveries()).toEqual(['submitted'])
    worker().port.arrived(['msg_1'], 'read', 'the answer began')
    await settle()
    expect(await deliveries()).toEqual(['read'])
  })

  it('comes again when the process that took it died before it wrote it down, and only then (C25)', async () => {
    await open()
    for (const title of ['One', 'Two', 'Three']) {
      await send(title)
      worker().become('idle')
      await settle()
    }
    worker().port.arrived(['msg_2'], 'read', 'the answer began')
    worker().become('exited')
    await settle()
    expect(await deliveries()).toEqual(['submitted', 'read', 'submitted'])

    puppets.isResumed = true
    const revive = async (whereabouts: 'submitted' | 'absent' | 'unknown') => {
      await board.order('request_action', { action: 'spawn_agent', target: 'Worker' })
      await settle()
      worker().whereabouts = whereabouts
      worker().become('idle')
      await settle()
      const given = worker().turns.map((turn) => turn.ids)
      worker().become('exited')
      await settle()
      return given
    }
    expect(await revive('submitted')).toEqual([])
    expect(await deliveries()).toEqual(['submitted', 'read', 'submitted'])
    expect(await revive('unknown')).toEqual([])
    expect(await deliveries()).toEqual(['submitted', 'read', 'uncertain'])
    expect(await revive('absent')).toEqual([['msg_3']])
  })

  it('is looked for though the service is killed before the new process is at its prompt (C25)', async () => {
    await open()
    await send('One')
    worker().become('idle')
    await settle()
    worker().become('exited')
    puppets.isResumed = true
    await board.order('request_action', { action: 'spawn_agent', target: 'Worker' })
    await settle()
    expect(await deliveries()).toEqual(['uncertain'])
    // The next service finds that very process: it has not taken anything up itself.
    puppets.isResumed = false
    await board.sessions.stop('Worker')
    await board.sessions.start('Worker')
    worker().become('idle')
    await settle()
    expect(worker().turns.map((turn) => turn.ids)).toEqual([['msg_1']])
  })

  it('is not overtaken by newer ones while it is looked for, unless that takes long (C25)', async () => {
    await open()
    await send('One')
    worker().become('idle')
    await settle()
    worker().become('exited')
    await send('Two')
    puppets.isResumed = true
    await board.order('request_action', { action: 'spawn_agent', target: 'Worker' })
    await settle()
    worker().whereabouts = 'unknown'
    worker().become('idle')
    await board.clock.advance(1000)
    await settle()
    expect(worker().turns).toEqual([])
    worker().whereabouts = 'absent'
    await board.clock.advance(500)
    await settle()
    expect(worker().turns.map((turn) => turn.ids)).toEqual([['msg_1', 'msg_2']])

    worker().become('exited')
    await send('Three')
    await board.order('request_action', { action: 'spawn_agent', target: 'Worker' })
    await settle()
    worker().whereabouts = 'unknown'
    worker().become('idle')
    for (let look = 0; look < 20; look++) {
      await board.clock.advance(500)
      await settle()
    }
    expect(worker().turns.map((turn) => turn.ids)).toEqual([['msg_3']])
  })

  it('is looked for though the service is killed before the new process is there (C25)', async () => {
    await open()
    await send('One')
    worker().become('idle')
    await settle()
    worker().become('exited')
    const { promise: there, resolve } = Promise.withResolvers<void>()
    const { start } = puppets
    puppets.start = async (agent, port) => {
      await agent.credentials({ isResumed: true })
      await there
      return await start(agent, port)
    }
    await board.order('request_action', { action: 'spawn_agent', target: 'Worker' })
    await settle()
    expect(await deliveries()).toEqual(['uncertain'])
    resolve()
  })

  it('that was overtaken by an urgent one is looked for as well when its process dies (C2, C25)', async () => {
    await open({ ...TEAM, agents: { ...TEAM.agents, Worker: { program: 'any', deliver: 'single' } } })
    await send('One')
    await send('Two', { priority: 'urgent' })
    worker().become('idle')
    await settle()
    worker().port.arrived(['msg_2'], 'read', 'the answer began')
    await board.clock.advance(10)
    worker().become('idle')
    await settle()
    expect(worker().turns.map((turn) => turn.ids)).toEqual([['msg_2'], ['msg_1']])
    worker().become('exited')
    puppets.isResumed = true
    await board.order('request_action', { action: 'spawn_agent', target: 'Worker' })
    await settle()
    worker().become('idle')
    await settle()
    expect(worker().turns.map((turn) => turn.ids)).toEqual([['msg_1']])
  })

  it('comes together with the others that wait, in order, or one by one if that is set', async () => {
    await open()
    for (const title of ['One', 'Two', 'Three']) await send(title)
    worker().become('idle')
    await settle()
    expect(worker().turns.map((turn) => turn.ids)).toEqual([['msg_1', 'msg_2', 'msg_3']])
    await board.close()

    await open({ ...TEAM, agents: { ...TEAM.agents, Worker: { program: 'any', deliver: 'single' } } })
    for (const title of ['One', 'Two']) await send(title)
    worker().become('idle')
    await settle()
    expect(worker().turns.map((turn) => turn.ids)).toEqual([['msg_1']])
    worker().become('idle')
    await settle()
    expect(worker().turns.map((turn) => turn.ids)).toEqual([['msg_1'], ['msg_2']])
  })

  it('goes back to the queue when it surely did not arrive, and is tried again', async () => {
    await open()
    worker().arrival = { state: 'queued', evidence: 'a draft of a person is in the input box' }
    worker().become('idle')
    await send('One')
    await settle()
    expect(await deliveries()).toEqual(['queued'])
    worker().arrival = { state: 'submitted', evidence: 'seen' }
    await board.clock.advance(6000)
    expect(await deliveries()).toEqual(['submitted'])
  })

  it('of which nobody knows whether it arrived is uncertain, and never sent again by time alone', async () => {
    await open()
    worker().whereabouts = 'unknown'
    worker().arrival = { state: 'uncertain', evidence: 'no sign of it' }
    worker().become('idle')
    await send('One')
    await board.clock.advance(3600_000)
    worker().become('idle')
    await board.clock.advance(3600_000)
    expect(worker().turns.length).toBe(1)
    expect(await deliveries()).toEqual(['uncertain'])
  })

  it('that turns out never to have arrived is sent again; one that did is not (C25)', async () => {
    await open()
    worker().whereabouts = 'unknown'
    worker().arrival = { state: 'uncertain', evidence: 'no sign of it' }
    worker().become('idle')
    await send('One')
    await settle()
    worker().whereabouts = 'absent'
    worker().arrival = { state: 'submitted', evidence: 'seen' }
    worker().become('idle')
    await settle()
    expect(worker().turns.map((turn) => turn.ids)).toEqual([['msg_1'], ['msg_1']])

    worker().arrival = { state: 'uncertain', evidence: 'no sign of it' }
    worker().whereabouts = 'submitted'
    worker().become('idle')
    await send('Two')
    await settle()
    worker().become('idle')
    await settle()
    expect(worker().turns.filter((turn) => turn.ids.includes('msg_2')).length).toBe(1)
    expect(await deliveries()).toEqual(['submitted', 'submitted'])
  })

  it('is handed out in the transaction that stores it when the agent waits for it', async () => {
    await open()
    worker().become('idle')
    await settle()
    const commits: string[][] = []
    board.store.onCommit((entries) => void commits.push(entries.map((entry) => entry.type)))
    await send('One')
    await settle()
    expect(worker().turns.map((turn) => turn.ids)).toEqual([['msg_1']])
    expect(commits[0]).toEqual(['message.accepted', 'delivery.written'])
    expect(await deliveries()).toEqual(['submitted'])
  })

  it('goes back to the queue when the agent turns busy as it is stored (C2)', async () => {
    await open()
    worker().become('idle')
    await settle()
    board.store.onCommit((entries) => {
      if (entries.some((entry) => entry.type === 'message.accepted')) worker().become('busy')
    })
    await send('One')
    await settle()
    expect(worker().turns).toEqual([])
    expect(await deliveries()).toEqual(['queued'])
    worker().become('idle')
    await settle()
    expect(worker().turns.map((turn) => turn.ids)).toEqual([['msg_1']])
    expect(await deliveries()).toEqual(['submitted'])
  })

  it('is uncertain when the runtime throws in the middle of it', async () => {
    await open()
    worker().whereabouts = 'unknown'
    worker().arrival = new Error('the pane went up in smoke')
    worker().become('idle')
    await send('One')
    await settle()
    expect(await deliveries()).toEqual(['uncertain'])
  })

  it('is announced at once when it is high, and interrupts when it is urgent, on record (C2)', async () => {
    await open()
    worker().become('busy')
    await send('Soon', { priority: 'high' })
    await settle()
    expect(worker().notices).toEqual([expect.stringContaining('from Master')])
    expect(worker().interrupts).toBe(0)
    await send('Stop', { priority: 'urgent' })
    await settle()
    expect(worker().interrupts).toBe(1)
    expect(board.types()).toContain('session.interrupted')
    expect(worker().turns[0]?.ids).toEqual(['msg_2', 'msg_1'])
  })

  it('is given again when an interrupt took it out of the conversation (ask 11)', async () => {
    await open()
    worker().become('idle')
    await send('One')
    await settle()
    worker().port.arrived(['msg_1'], 'queued', 'the interrupt took it back')
    worker().become('idle')
    await settle()
    expect(worker().turns.map((turn) => turn.ids)).toEqual([['msg_1'], ['msg_1']])
    expect(await deliveries()).toEqual(['submitted'])
  })

  it('is held while the agent is paused, and nothing is interrupted (S1.24)', async () => {
    await open()
    await board.order('request_action', { action: 'pause_session', target: 'Worker' })
    worker().become('idle')
    await send('One')
    await settle()
    expect(worker().turns).toEqual([])
    await board.order('request_action', { action: 'resume_session', target: 'Worker' })
    await settle()
    expect(worker().turns.length).toBe(1)
  })
})

describe('a restart of the service', () => {
  it('finds the agent by what its session kept, and looks for what was on its way (C25)', async () => {
    await open()
    await worker().port.keep({ pane: '%1', offset: 10 })
    await worker().port.keep({ pane: '%1', offset: 42 })
    const { promise: never } = Promise.withResolvers<never>()
    worker().arrival = never
    worker().become('idle')
    await send('One')
    await settle()
    const first = worker()
    board = await board.reopen()
    expect(first.ended).toBe('leave')
    expect(worker()).not.toBe(first)
    expect(worker().start.kept).toEqual({ pane: '%1', offset: 42 })
    expect(worker().start.nonce).toBe(first.start.nonce)
    worker().whereabouts = 'submitted'
    worker().become('idle')
    await settle()
    expect(worker().turns).toEqual([])
    expect(await deliveries()).toEqual(['submitted'])
  })

  it('brings back what ran, and leaves alone what was stopped on purpose', async () => {
    await open({ agents: { Master: {}, A: { program: 'any' }, B: { program: 'any', autostart: false } } })
    await board.order('request_action', { action: 'terminate_agent', target: 'A' })
    await board.order('request_action', { action: 'spawn_agent', target: 'B' })
    await settle()
    board = await board.reopen()
    await settle()
    expect([puppets.started('A'), puppets.started('B')]).toEqual([1, 2])
  })

  it('reads a transcript again without doing anything twice (C25)', async () => {
    await open()
    const text = `${command('Hi', 'hello')}\n${command('Ho', 'hello')}`
    await worker().port.said({ text, channel: 'transcript', key: 'rec-1' })
    board = await board.reopen()
    await worker().port.said({ text, channel: 'transcript', key: 'rec-1' })
    expect((await board.mailOf('Master')).map((mail) => mail.title)).toEqual(['Hi', 'Ho'])
  })

  it('keeps the place of what was said only once its answer arrived', async () => {
    await open()
    let answered = false
    const said = worker()
      .port.said({ text: '<orc-command name="list_agents"/>', channel: 'transcript', key: 'rec-1' })
      .then(() => {
        answered = true
      })
    await settle()
    expect(answered).toBe(false)
    worker().become('idle')
    await said
    expect(worker().turns[0]?.text).toContain('[ORCHESTRATOR RESPONSE]')
  })
})

describe('what an agent says', () => {
  it('is confirmed with its next turn, which a mere confirmation does not begin', async () => {
    await open()
    worker().become('busy')
    await worker().port.said({ text: command('Hi', 'hello'), channel: 'transcript', key: 'rec-1' })
    worker().become('idle')
    await settle()
    expect(worker().turns).toEqual([])
    await send('One')
    await settle()
    expect(worker().turns[0]?.text).toMatch(/Status: delivered[\s\S]*\[ORCHUB MESSAGE msg_2\]/)
  })

  it('acts once when it is said by a tool and in the text of one turn', async () => {
    await open()
    worker().become('busy')
    const fields = { to: 'Master', title: 'Hi', content: 'hello' }
    const agent = { kind: 'agent' as const, agent: 'Worker' }
    const first = await board.handle(agent, { type: 'send_message', fields }, { channel: 'mcp' })
    await worker().port.said({
      text: command('Hi', ' hello\n', ' from="Worker"'),
      channel: 'transcript',
      key: 'rec-1',
    })
    expect((await board.mailOf('Master')).length).toBe(1)
    // Said once more by the tool, it is meant once more.
    const again = await board.handle(agent, { type: 'send_message', fields }, { channel: 'mcp' })
    expect(again).not.toEqual(first)
    expect((await board.mailOf('Master')).length).toBe(2)
    // In another turn it is another command.
    await board.clock.advance(1000)
    worker().become('busy')
    await worker().port.said({ text: command('Hi', 'hello'), channel: 'transcript', key: 'rec-2' })
    expect((await board.mailOf('Master')).length).toBe(3)
  })

  it('counts on a screen only with the nonce of the session', async () => {
    await open()
    const { nonce } = worker().start
    worker().become('busy')
    for (const mark of ['', ' nonce="guessed"', ` nonce="${nonce}"`]) {
      await worker().port.said({ text: `${command(`with${mark.length}`, 'hello', mark)}\n`, channel: 'pane' })
    }
    worker().become('idle')
    await settle()
    expect((await board.mailOf('Master')).length).toBe(1)
    expect(worker().start.prompt).toContain(`nonce="${nonce}"`)
    expect(worker().start.prompt).not.toMatch(new RegExp(`<orc-command[^>]*${nonce}`))
  })
})

describe('a dialog of an agent program', () => {
  const question = { key: 'd1', tool: 'Bash', input: { command: 'rm -rf build' } }
  const openRequests = () =>
    board.store.all<{ id: number; state: string; question: string }>('SELECT * FROM human_requests')

  it('becomes a request that a person answers from anywhere (C9)', async () => {
    await open()
    const verdict = worker().port.asked(question, new AbortController().signal)
    await settle()
    expect(await openRequests()).toMatchObject([
      { state: 'open', question: 'May Worker use Bash: rm -rf build?' },
    ])
    await board.verdicts.decide({ kind: 'operator' }, 'req_1', { decision: 'reject', comment: 'keep it' })
    expect(await verdict).toEqual({ allow: false, comment: 'keep it' })
  })

  it('that is answered in the terminal closes its request by itself', async () => {
    await open()
    const gone = new AbortController()
    const verdict = worker().port.asked(question, gone.signal)
    await settle()
    gone.abort()
    expect(await verdict).toBeUndefined()
    expect(await openRequests()).toMatchObject([{ state: 'withdrawn' }])
    await expect(
      board.verdicts.decide({ kind: 'operator' }, 'req_1', { decision: 'approve' }),
    ).rejects.toMatchObject({ code: 'CONFLICT' })
  })

  it('that outlives a restart of the service keeps its request; one that does not is withdrawn', async () => {
    await open()
    const { signal } = new AbortController()
    void worker().port.asked(question, signal)
    void worker().port.asked({ ...question, key: 'd2' }, signal)
    await settle()
    board = await board.reopen()
    await expect(
      board.verdicts.decide({ kind: 'operator' }, 'req_1', { decision: 'approve' }),
    ).rejects.toMatchObject({ code: 'CONFLICT' })
    const verdict = worker().port.asked(question, signal)
    await board.clock.advance(20_000)
    expect((await openRequests()).map((request) => request.state)).toEqual(['open', 'withdrawn'])
    await board.verdicts.decide({ kind: 'operator' }, 'req_1', { decision: 'approve' })
    expect(await verdict).toEqual({ allow: true })
  })

  it('that its program cannot explain is told to a person, with where to answer', async () => {
    await open()
    worker().become('waiting_input')
    await board.clock.advance(2000)
    expect(await openRequests()).toMatchObject([
      { state: 'open', question: expect.stringContaining('orc attach Worker') },
    ])
    worker().become('busy')
    await board.clock.advance(2000)
    expect(await openRequests()).toMatchObject([{ state: 'withdrawn' }])
  })
})

describe('the context and the cost of an agent', () => {
  const spent = (key: string, input: number) => ({
    key,
    input,
    output: 0,
    cacheRead: 0,
    cacheWrite: 0,
  })

  it('is known from its program, and its parent and a person are warned once a step (C26)', async () => {
    await open()
    const fill = async (contextTokens: number) => {
      worker().port.used({ model: 'm-1', contextTokens, contextWindow: 200_000, lines: 12, bytes: 3000 })
      await settle()
    }
    await fill(100_000)
    expect(await board.say('Worker', 'context_status')).toMatchObject({
      status: 'ok',
      details: { tokens: 100_000, window: 200_000, percent: 50, level: 'ok', lines: 12 },
    })
    for (const tokens of [151_000, 152_000, 181_000, 182_000]) await fill(tokens)
    expect((await board.mailOf('Master')).map((mail) => mail.title)).toEqual([
      "Worker's context is 75.5 % full (151000 of 200000 tokens)",
      "Worker's context is 90.5 % full (181000 of 200000 tokens)",
    ])
    expect(board.types().filter((type) => type.startsWith('context.'))).toEqual([
      'context.warning',
      'context.critical',
    ])
  })

  it('is capped: the agent is paused and a person told; resuming grants the same sum again (ask 14)', async () => {
    await open({
      ...TEAM,
      prices: { 'm-': { input: 10, output: 50 } },
      limits: { spend: { per_agent: 2 } },
    })
    const use = async (key: string) => {
      worker().port.used({ model: 'm-1', spent: spent(key, 150_000) })
      await settle()
    }
    const isPaused = async () =>
      (await board.store.get<{ paused: number }>(`SELECT paused FROM agents WHERE name = 'Worker'`))!.paused
    await use('a')
    await use('a')
    expect(await isPaused()).toBe(0)
    await use('b')
    expect(await isPaused()).toBe(1)
    await board.order('request_action', { action: 'resume_session', target: 'Worker' })
    await settle()
    await use('c')
    expect(await isPaused()).toBe(0)
    await use('d')
    expect(await isPaused()).toBe(1)
    expect(board.types().filter((type) => type === 'spend.capped').length).toBe(2)
  })
})

describe('an agent', () => {
  it('that cannot be started says why, and harms nobody else', async () => {
    puppets = createPuppets()
    puppets.failNext = new AppError('PROGRAM_MISSING', 'claude is not installed', { hint: 'npm install it' })
    board = await openBoard(
      { agents: { Master: { program: 'any' }, Worker: { program: 'any' } } },
      { runtimes: [puppets] },
    )
    await settle()
    const rows = await board.store.all<{ name: string; session_state: string }>('SELECT * FROM agents')
    expect(rows.map((row) => row.session_state)).toContain('error')
    expect(board.entries.map((entry) => entry.text).join('\n')).toContain(
      'claude is not installed. npm install it',
    )
    expect(puppets.started('Master') + puppets.started('Worker')).toBe(1)
  })

  it('that cannot be attended is let go, and taken up by the next start', async () => {
    await open()
    await board.sessions.stop('Worker')
    const { start } = puppets
    puppets.start = async (...order) => {
      const session = await start(...order)
      Object.defineProperty(session, 'state', {
        get() {
          throw new Error('the database is gone')
        },
      })
      return session
    }
    await board.sessions.start('Worker')
    expect(worker().ended).toBe('leave')
    puppets.start = start
    await board.sessions.start('Worker')
    expect(worker().ended).toBeUndefined()
  })

  it('that is being stopped when the service ends is stopped before its runtime is closed', async () => {
    await open()
    const { promise: stopped, resolve } = Promise.withResolvers<void>()
    worker().stopped = stopped
    let endedAtClose: string | undefined = 'never closed'
    puppets.close = async () => {
      endedAtClose = worker().ended
    }
    const stopping = board.sessions.stop('Worker')
    const closing = board.sessions.close('end')
    await settle()
    resolve()
    await Promise.all([stopping, closing])
    expect(endedAtClose).toBe('stop')
  })

  it('that is still starting when the service leaves keeps what finds it again', async () => {
    await open()
    await board.sessions.stop('Worker')
    const { promise: there, resolve } = Promise.withResolvers<void>()
    const { start } = puppets
    puppets.start = async (agent, port) => {
      await there
      await port.keep({ pane: '%7' })
      return start(agent, port)
    }
    const starting = board.sessions.start('Worker')
    await settle()
    const closing = board.sessions.close('leave')
    await settle()
    resolve()
    await Promise.all([starting, closing])
    expect(worker().ended).toBe('leave')
    const row = await readSession(board.store, 'Worker')
    expect(JSON.parse(row!.kept!)).toMatchObject({ value: { pane: '%7' } })
  })

  it('gets a token of its own for each process, and the one before it dies', async () => {
    await open()
    const one = await worker().start.credentials()
    expect(board.tokens.authenticate(one.token)).toMatchObject({ kind: 'agent', agent: 'Worker' })
    const two = await worker().start.credentials()
    expect(board.tokens.authenticate(one.token)).toBeUndefined()
    expect(board.tokens.authenticate(two.token)).toMatchObject({ agent: 'Worker' })
    await board.order('request_action', { action: 'terminate_agent', target: 'Worker' })
    await settle()
    expect(board.tokens.authenticate(two.token)).toBeUndefined()
  })

  it('that is started while it is still being stopped is not found running, and keeps its new token', async () => {
    await open()
    const first = worker()
    const { promise, resolve } = Promise.withResolvers<void>()
    first.stopped = promise
    await board.order('request_action', { action: 'terminate_agent', target: 'Worker' })
    const spawn = { action: 'spawn_agent', target: 'Worker' }
    expect(await board.order('request_action', spawn)).toMatchObject({ status: 'ok' })
    await settle()
    expect(puppets.started('Worker')).toBe(1)
    resolve()
    await settle()
    expect(puppets.started('Worker')).toBe(2)
    const { token } = await worker().start.credentials()
    worker().become('idle')
    await send('One')
    await settle()
    expect(worker().turns).toHaveLength(1)
    expect(board.tokens.authenticate(token)).toMatchObject({ agent: 'Worker' })
  })

  it('that is reset begins a new conversation with a new nonce, and its role in the prompt', async () => {
    await open()
    await worker().port.keep({ conversation: 'old' })
    const first = worker()
    await board.order('request_action', { action: 'reset_session', target: 'Worker' })
    await settle()
    expect(first.ended).toBe('stop')
    expect(worker().start.kept).toBeUndefined()
    expect(worker().start.nonce).not.toBe(first.start.nonce)
    expect(worker().start.prompt).toContain('You are Worker')
  })

  it('is told to its own hooks, and to nobody else', async () => {
    await open()
    const { signal } = new AbortController()
    expect(await board.sessions.hook('Worker', { event: 'Stop' }, signal)).toEqual({
      heard: { event: 'Stop' },
    })
    await expect(board.sessions.hook('Master', {}, signal)).rejects.toMatchObject({ code: 'CONFLICT' })
  })
})
