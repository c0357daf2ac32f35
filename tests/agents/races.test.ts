import { afterEach, describe, expect, it } from 'vitest'
import type { ConfigInput } from '../../src/config/config.ts'
import type { DeliveryResult, Runtime, Session } from '../../src/runtimes/runtime.ts'
import { createPuppets, type Puppets } from '../fakes/puppet-runtime.ts'
import { openTestEngine, type TestEngine } from '../harness/engine.ts'

let engine: TestEngine
let puppets: Puppets
afterEach(() => engine.close())

const TEAM = {
  agents: { Master: {}, Worker: { program: 'any', parent: 'Master' } },
} satisfies ConfigInput

async function open(
  input: Omit<ConfigInput, 'store' | 'service'> = TEAM,
  around = (runtime: Runtime) => runtime,
) {
  puppets = createPuppets()
  engine = await openTestEngine(input, { runtimes: [around(puppets)] })
  await settle()
}

const worker = () => puppets.of('Worker')
const settle = () => engine.clock.advance(0)
const send = (title: string) =>
  engine.say('Master', 'send_message', { to: 'Worker', title, content: `about ${title}` })
const order = (action: string) => engine.order('request_action', { action, target: 'Worker' })
const deliveries = async () => (await engine.mailOf('Worker')).map((mail) => mail.delivery)
const session = async () =>
  (await engine.store.get<{ session_state: string }>(`SELECT * FROM agents WHERE name = 'Worker'`))!
    .session_state

/** The first session's end waits for the gate. */
function slowToEnd(
  gate: Promise<void>,
  onStart: (start: Parameters<Runtime['start']>[0]) => Promise<unknown> | undefined,
) {
  let count = 0
  return (runtime: Runtime): Runtime => ({
    ...runtime,
    async start(agent, port) {
      await onStart(agent)
      const inner = await runtime.start(agent, port)
      const isFirst = ++count === 1
      const stop = async () => {
        if (isFirst) await gate
        await inner.stop()
      }
      return Object.defineProperty({ ...inner, stop }, 'state', { get: () => inner.state }) as Session
    },
  })
}

describe('a delivery and the end of its session', () => {
  it('never duplicates: late evidence of an ended session is ignored', async () => {
    await open()
    const first = worker()
    const late = Promise.withResolvers<DeliveryResult>()
    first.arrival = late.promise
    first.become('idle')
    await send('One')
    await settle()
    await order('reset_session')
    await settle()
    worker().become('idle')
    await settle()
    late.resolve({ state: 'queued', evidence: 'the pane is gone' })
    await settle()
    worker().become('idle')
    await settle()
    expect(worker().turns.map((turn) => turn.ids)).toEqual([['msg_1']])
    expect(await deliveries()).toEqual(['submitted'])
  })

  it.each(['uncertain', 'queued'] as const)(
    'does not go down the ladder: submitted, then %s',
    async (state) => {
      await open()
      const late = Promise.withResolvers<DeliveryResult>()
      worker().arrival = late.promise
      worker().become('idle')
      await send('One')
      await settle()
      worker().port.onEvidence(['msg_1'], 'submitted', 'its hook showed the prompt')
      await settle()
      late.resolve({ state, evidence: 'no sign of it' })
      await settle()
      worker().become('idle')
      await settle()
      expect(await deliveries()).toEqual(['submitted'])
      expect(worker().turns.length).toBe(1)
    },
  )

  it('that a draft blocks is withdrawn when the agent is paused, and when its session ends', async () => {
    await open()
    worker().arrival = new Promise(() => {})
    worker().become('idle')
    await send('One')
    await settle()
    expect(worker().withdrawn).toEqual([])
    await order('pause_session')
    await settle()
    expect(worker().withdrawn).toEqual(['it was paused'])
    await order('terminate_agent')
    await settle()
    expect(worker().withdrawn).toEqual(['it was paused'])
  })
})

describe('messages one by one', () => {
  it('keep their order when the first cannot be delivered yet', async () => {
    await open({ agents: { Master: {}, Worker: { program: 'any', deliver: 'single' } } })
    worker().become('idle')
    await settle()
    worker().arrival = { state: 'queued', evidence: 'a draft' }
    await Promise.all(['One', 'Two', 'Three'].map(send))
    await settle()
    const refused = worker().turns.length
    worker().arrival = { state: 'submitted', evidence: 'seen' }
    await engine.clock.advance(6000)
    for (let more = 0; more < 3; more++) {
      worker().become('idle')
      await settle()
    }
    expect(
      worker()
        .turns.slice(refused)
        .flatMap((turn) => turn.ids),
    ).toEqual(['msg_1', 'msg_2', 'msg_3'])
  })
})

describe('answers', () => {
  it('share the fate of the messages delivered with them: if absent, they are delivered again', async () => {
    await open()
    worker().become('busy')
    const text = '<orc-command name="send_message" to="Nobody" title="x">y</orc-command>'
    void worker().port.onText({ text, channel: 'transcript', key: 'k1' })
    await settle()
    await send('One')
    worker().arrival = { state: 'uncertain', evidence: 'pasted, and then nothing' }
    worker().whereabouts = 'absent'
    worker().become('idle')
    await settle()
    worker().arrival = { state: 'submitted', evidence: 'seen' }
    worker().become('idle')
    await settle()
    expect(worker().turns.at(-1)?.text).toMatch(/Unknown|Nobody/)
    expect(worker().turns.at(-1)?.ids).toEqual(['msg_1'])
  })

  it('to a mailbox_check in the text contain the messages once, identified by their ids', async () => {
    await open()
    worker().become('busy')
    await send('One')
    void worker().port.onText({
      text: '<orc-command name="mailbox_check"/>',
      channel: 'transcript',
      key: 'k1',
    })
    await engine.clock.advance(60_000)
    worker().become('idle')
    await settle()
    expect(worker().turns.length).toBe(1)
    const { text, ids } = worker().turns[0]!
    expect(text).toContain('1 new message follows')
    expect(text.split('about One').length - 1).toBe(1)
    expect(ids).toEqual(['msg_1'])
  })
})

describe('starting and stopping one agent', () => {
  it('stops an agent that is starting, and revokes its token', async () => {
    const gate = Promise.withResolvers<void>()
    let token = ''
    await open(
      { agents: { Master: {}, Worker: { program: 'any', autostart: false } } },
      slowToEnd(Promise.resolve(), async (agent) => {
        token = (await agent.credentials()).token
        // A runtime that does not heed the call.
        await gate.promise
      }),
    )
    await order('spawn_agent')
    await settle()
    await order('terminate_agent')
    await settle()
    gate.resolve()
    await settle()
    expect([await session(), worker().ended]).toEqual(['exited', 'stop'])
    expect(engine.tokens.authenticate(token)).toBeUndefined()
  })

  it('leaves an agent stopped that is stopped during a reset', async () => {
    const gate = Promise.withResolvers<void>()
    await open(
      TEAM,
      slowToEnd(gate.promise, () => undefined),
    )
    await order('reset_session')
    await settle()
    expect(await order('terminate_agent')).toMatchObject({ status: 'ok' })
    gate.resolve()
    await settle()
    expect(puppets.started('Worker')).toBe(1)
    expect(await session()).toBe('exited')
  })
})

describe('a start that hangs', () => {
  const STOPPED = ['exited', 'it was stopped while it started']

  /** Keeps its mark, as every runtime does before it starts a process, and then never gets there. */
  async function openHanging() {
    const discarded: unknown[] = []
    const calledOff: string[] = []
    let starts = 0
    await open(TEAM_ASLEEP, (runtime) => ({
      ...runtime,
      async start(agent, port) {
        starts += 1
        if (starts > 1) return await runtime.start(agent, port)
        await agent.credentials()
        await port.saveState({ mark: 'm1' })
        return await new Promise((_, reject) =>
          agent.signal!.addEventListener('abort', () => {
            calledOff.push((agent.signal!.reason as Error).message)
            reject(agent.signal!.reason)
          }),
        )
      },
      async discard(kept) {
        discarded.push(kept)
      },
    }))
    await order('spawn_agent')
    await settle()
    expect(await session()).toBe('initializing')
    return { discarded, calledOff }
  }

  const TEAM_ASLEEP = {
    agents: { Master: {}, Worker: { program: 'any', autostart: false } },
  } satisfies ConfigInput
  const lastChange = () => {
    const { data } = engine.entries.findLast(({ type }) => type === 'session.changed')!
    const { session: state, evidence } = data as { session: string; evidence: string }
    return [state, evidence]
  }

  it('is cancelled by a stop, and none of its processes is left (C15)', async () => {
    const { discarded, calledOff } = await openHanging()
    expect(await order('terminate_agent')).toMatchObject({ status: 'ok' })
    await settle()
    expect(calledOff).toEqual(['it was stopped'])
    expect(discarded).toEqual([{ mark: 'm1' }])
    expect(lastChange()).toEqual(STOPPED)
    expect(engine.sessions.session('Worker')).toBeUndefined()
  })

  it('leaves the conversation to be resumed by the next start', async () => {
    await openHanging()
    await order('terminate_agent')
    await settle()
    await order('spawn_agent')
    await settle()
    expect(worker().start.savedState).toEqual({ mark: 'm1' })
    expect(await session()).toBe('initializing')
  })

  it('does not delay the end of the service, which ends its processes', async () => {
    const { discarded } = await openHanging()
    const closed = engine.engine.close('end')
    await settle()
    await closed
    expect(discarded).toEqual([{ mark: 'm1' }])
  })

  it('that ignores its cancellation delays others only briefly, and gets no token', async () => {
    const late = Promise.withResolvers<void>()
    let token: unknown
    await open(TEAM_ASLEEP, (runtime) => ({
      ...runtime,
      async start(agent, port) {
        await late.promise
        token = await agent.credentials().catch((error: Error) => error.message)
        return await runtime.start(agent, port)
      },
    }))
    await order('spawn_agent')
    await settle()
    let isOver = false
    void engine.sessions.stop('Worker').then(() => (isOver = true))
    await engine.clock.advance(9000)
    expect(isOver).toBe(false)
    await engine.clock.advance(2000)
    expect(isOver).toBe(true)
    late.resolve()
    await settle()
    expect(token).toBe('it was stopped')
    expect(worker().ended).toBe('stop')
    expect(lastChange()).toEqual(STOPPED)
  })
})

describe('notices to people', () => {
  it('come once when the team has reached its cap', async () => {
    await open({
      agents: { Master: {}, Worker: { program: 'any' }, Other: { program: 'any' } },
      prices: { m: { input: 1, output: 1 } },
      limits: { spend: { total: 1 } },
    })
    for (let answer = 0; answer < 5; answer++) {
      const spent = { key: `a${answer}`, input: 2_000_000, output: 0, cacheRead: 0, cacheWrite: 0 }
      worker().port.onUsage({ model: 'm-1', spent })
    }
    await settle()
    const requests = await engine.store.all<{ question: string }>('SELECT * FROM human_requests')
    expect(requests.map((request) => request.question)).toEqual([
      expect.stringContaining('All agents are paused'),
    ])
  })

  it('about an unexplained dialog come again after a restart', async () => {
    await open()
    worker().become('waiting_input')
    await engine.clock.advance(2000)
    engine = await engine.reopen()
    worker().become('waiting_input')
    await engine.clock.advance(2000)
    const states = (await engine.store.all<{ state: string }>('SELECT * FROM human_requests')).map(
      (one) => one.state,
    )
    expect(states).toEqual(['withdrawn', 'open'])
  })
})

describe('a process left by an earlier session', () => {
  const discarded: unknown[] = []
  const discarding = (runtime: Runtime): Runtime => ({
    ...runtime,
    discard: async (kept) => void discarded.push(kept),
  })

  it('ends when its agent is no longer in the team, or has no runtime', async () => {
    await open(TEAM, discarding)
    await worker().port.saveState({ pane: '%7' })
    const { folder, clock } = engine
    await engine.engine.close('leave')
    engine = await openTestEngine(
      { agents: { Master: {} } },
      { runtimes: [discarding(puppets)], folder, clock },
    )
    await settle()
    expect(discarded.splice(0)).toEqual([{ pane: '%7' }])
  })

  it('ends when the agent now has another runtime, which starts a new conversation', async () => {
    await open(TEAM, discarding)
    await worker().port.saveState({ pane: '%7' })
    const { folder, clock } = engine
    await engine.engine.close('leave')
    const other = createPuppets('acp')
    engine = await openTestEngine(
      { agents: { Master: {}, Worker: { program: 'any', runtime: 'acp' } } },
      { runtimes: [discarding(puppets), other], folder, clock },
    )
    await settle()
    expect(discarded.splice(0)).toEqual([{ pane: '%7' }])
    expect(other.of('Worker').start.savedState).toBeUndefined()
  })
})
