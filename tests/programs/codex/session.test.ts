import { afterEach, describe, expect, it } from 'vitest'
import { openSession } from '../../../src/programs/codex/session.ts'
import type { CodexSavedState } from '../../../src/programs/codex/thread-follower.ts'
import { createRecordingPort, type RecordingPort } from '../../fakes/recording-port.ts'
import { type Answer, type Call, type FakeAppServer, startFakeAppServer } from './fake-app-server.ts'
import {
  agentMessage,
  commandApproval,
  THREAD,
  TURN,
  thread,
  tokenUsage,
  turn,
  userMessage,
} from './recorded.ts'

const MESSAGE = '[ORCHUB MESSAGE msg_1]\nhello\n[END ORCHUB MESSAGE msg_1]'
const LAUNCHED = 1794725051_000

interface SessionOptions {
  savedState?: Partial<CodexSavedState>
  watchOrphans?: () => Promise<() => Promise<void>>
  answers?: Record<string, (call: Call) => Answer>
}

describe('a session of codex', () => {
  let server: FakeAppServer
  let opened: ReturnType<typeof openSession>
  const ended: (() => Promise<unknown>)[] = []

  afterEach(async () => {
    for (const end of ended.splice(0)) await end()
  })

  const ANSWERS: Record<string, (call: Call) => Answer> = {
    'thread/loaded/list': () => ({ result: { data: [THREAD], nextCursor: null } }),
    'thread/read': () => ({ result: { thread: thread() } }),
    'thread/resume': () => ({ result: { thread: thread(), model: 'fake-model' } }),
    'thread/items/list': () => ({ result: { data: [], nextCursor: null } }),
    'thread/turns/list': () => ({ result: { data: [] } }),
    'turn/start': () => ({ result: { turn: turn('inProgress') } }),
  }

  async function open({ savedState, answers, watchOrphans }: SessionOptions = {}) {
    const all = { ...ANSWERS, ...answers }
    server = await startFakeAppServer((call) => {
      const given = all[call.method!]
      return given === undefined ? { error: `no ${call.method}` } : given(call)
    })
    const port = createRecordingPort()
    const warnings: unknown[] = []
    opened = openSession({
      savedState: { socket: server.path, launchedAt: LAUNCHED, threads: [], ...savedState },
      port: port,
      warn: (fields, text) => void warnings.push({ text, ...fields }),
      ...(watchOrphans === undefined ? {} : { pane: { watchOrphans: watchOrphans } }),
    })
    ended.push(() => opened.session.close('leave'), server.close.bind(server))
    await opened.ready
    await port.until(() => opened.session.state === 'idle')
    await until(() => server.called('thread/turns/list').length > 0)
    return { port, session: opened.session, warnings }
  }

  async function until(isSo: () => boolean) {
    while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5))
  }

  const itemCompleted = (item: object) =>
    server.notify('item/completed', { threadId: THREAD, turnId: TURN, item, completedAtMs: 1 })
  const status = (type: string, activeFlags?: string[]) =>
    server.notify('thread/status/changed', { threadId: THREAD, status: { type, activeFlags } })
  const turnStarted = () => server.notify('turn/started', { threadId: THREAD, turn: turn('inProgress') })
  /** Answers a turn/start with the record of its message. */
  const record = (call: Call) => {
    setImmediate(() => itemCompleted(userMessage(MESSAGE, call.params!.clientUserMessageId as string)))
    return { result: { turn: turn('inProgress') } }
  }

  it('reports a message as submitted when its record is in the thread, by its id', async () => {
    const { session, port } = await open({ answers: { 'turn/start': record } })
    expect(await session.deliver({ text: MESSAGE, ids: ['msg_1'] })).toMatchObject({
      state: 'submitted',
      evidence: expect.stringContaining('01a1ddf1-76bc-7fb3-a656-0cce70145936'),
    })
    expect(port.arrived).toMatchObject([{ ids: ['msg_1'], state: 'submitted' }])
  })

  it('allows another attempt if the server refused it', async () => {
    const { session } = await open({ answers: { 'turn/start': () => ({ error: 'ActiveTurnNotSteerable' }) } })
    expect(await session.deliver({ text: MESSAGE, ids: ['msg_1'] })).toMatchObject({
      state: 'queued',
      evidence: expect.stringContaining('ActiveTurnNotSteerable'),
    })
  })

  it.each([
    ['the answer', () => undefined],
    ['the record', () => ({ result: { turn: turn('inProgress') } })],
  ])('reports it as uncertain when the connection breaks before %s', async (_name, answer) => {
    const { session } = await open({ answers: { 'turn/start': answer } })
    const arrival = session.deliver({ text: MESSAGE, ids: ['msg_1'] })
    await until(() => server.called('turn/start').length > 0)
    server.drop()
    expect(await arrival).toMatchObject({ state: 'uncertain' })
  })

  it('reconnects after a lost connection, and catches up on missed text once', async () => {
    const before = agentMessage('before', 'msg_a')
    const meanwhile = agentMessage('meanwhile', 'msg_b')
    let history: object[] = []
    const { session, port } = await open({
      answers: {
        'thread/items/list': () => ({
          result: {
            data: history.map((item) => ({ turnId: TURN, item: { ...item, completedAtMs: LAUNCHED } })),
          },
        }),
      },
    })
    itemCompleted(before)
    await port.until(() => (port.savedState as CodexSavedState | undefined)?.saidUpTo === `${TURN}/msg_a`)
    history = [meanwhile, before]
    server.drop()
    await port.until(() => port.states.some(({ state }) => state === 'unknown'))
    await port.until(() => port.said.length === 2)
    expect(port.said.map(({ text }) => text)).toEqual(['before', 'meanwhile'])
    expect(session.state).toBe('idle')
    await port.until(() => (port.savedState as CodexSavedState).saidUpTo === `${TURN}/msg_b`)
  })

  it('passes on the text of a turn before its end, even if both arrive at once (ask 5)', async () => {
    const { port } = await open({})
    const heard: string[] = []
    port.onStateChange = (state) => void heard.push(`${state}, ${port.said.length} said`)
    status('active', [])
    itemCompleted(agentMessage('last words', 'msg_a'))
    status('idle')
    await until(() => heard.length === 2)
    expect(heard).toEqual(['busy, 0 said', 'idle, 1 said'])
  })

  it('ignores text from before this agent had the thread', async () => {
    const data = [
      { turnId: TURN, item: { ...agentMessage('mine', 'msg_b'), completedAtMs: LAUNCHED + 5 } },
      { turnId: TURN, item: { ...agentMessage("somebody's", 'msg_a'), completedAtMs: LAUNCHED - 5 } },
    ]
    const { port } = await open({ answers: { 'thread/items/list': () => ({ result: { data } }) } })
    await port.until(() => port.said.length > 0)
    expect(port.said).toEqual([{ text: 'mine', channel: 'api', key: `codex:${THREAD}:${TURN}/msg_b` }])
  })

  it('reads only the thread in the pane (C4)', async () => {
    const { port, session } = await open({
      answers: {
        'thread/read': ({ params }) => ({
          result: {
            thread: thread(
              { type: 'idle' },
              { id: params!.threadId, ephemeral: params!.threadId !== THREAD },
            ),
          },
        }),
      },
    })
    const threadId = 'another'
    server.notify('thread/status/changed', { threadId, status: { type: 'active', activeFlags: [] } })
    server.notify('item/completed', { threadId, turnId: TURN, item: agentMessage('not mine') })
    itemCompleted(agentMessage('mine'))
    await port.until(() => port.said.length > 0)
    expect(port.said.map(({ text }) => text)).toEqual(['mine'])
    expect(session.state).toBe('idle')
  })

  it('distinguishes busy from an open dialog, and accepts nothing in either', async () => {
    const { session, port } = await open()
    status('active', [])
    await port.until(() => session.state === 'busy')
    status('active', ['waitingOnApproval'])
    await port.until(() => session.state === 'waiting_input')
    expect(await session.deliver({ text: MESSAGE, ids: ['msg_1'] })).toMatchObject({ state: 'queued' })
    expect(server.called('turn/start')).toEqual([])
  })

  it.each([
    ['before', ['error', 'status']],
    ['after', ['status', 'error']],
    ['with the end of the turn, after', ['status', 'end']],
  ])('reports why a turn failed if the reason comes %s', async (_, order) => {
    const { session, port } = await open()
    const fail = (what: string) => {
      const error = { message: 'It is broken.' }
      if (what === 'status') status('systemError')
      else if (what === 'error')
        server.notify('error', { threadId: THREAD, turnId: TURN, error, willRetry: false })
      else server.notify('turn/completed', { threadId: THREAD, turn: { ...turn('failed'), error } })
    }
    status('active', [])
    turnStarted()
    await port.until(() => session.state === 'busy')
    for (const what of order) fail(what)
    await port.until(() => session.state === 'idle')
    expect(port.states.at(-1)!.evidence).toBe('Codex: the last turn failed: It is broken.')
  })

  it('does not report the reason of an earlier failure for a turn', async () => {
    const { session, port } = await open()
    const error = { message: 'It is broken.' }
    server.notify('error', { threadId: THREAD, turnId: 'before', error, willRetry: false })
    status('active', [])
    turnStarted()
    await port.until(() => session.state === 'busy')
    status('systemError')
    await port.until(() => session.state === 'idle')
    expect(port.states.at(-1)!.evidence).toBe('Codex: the last turn failed')
  })

  it('reports the context of the last answer, and counts each answer once (C26)', async () => {
    const { port } = await open()
    server.notify('thread/tokenUsage/updated', tokenUsage)
    await port.until(() => port.used.length > 0)
    expect(port.used).toEqual([
      {
        model: 'fake-model',
        contextTokens: 600,
        contextWindow: 258400,
        spent: { key: `codex:${THREAD}:990`, input: 200, output: 40, cacheRead: 400, cacheWrite: 0 },
      },
    ])
  })

  it('skips unknown messages and continues', async () => {
    const { port, warnings } = await open()
    server.send('no JSON')
    server.send('[1]')
    server.notify('thread/status/changed', { threadId: 7 })
    server.send(
      JSON.stringify({ id: 1, method: 'item/commandExecution/requestApproval', params: { threadId: 7 } }),
    )
    server.notify('something/new', {})
    itemCompleted(agentMessage('still here'))
    await port.until(() => port.said.length > 0)
    expect(warnings).toHaveLength(4)
  })

  /** A person denies what a running turn asks for, and says why. */
  async function denyWithReason(port: RecordingPort) {
    turnStarted()
    const method = 'item/commandExecution/requestApproval'
    server.send(JSON.stringify({ id: 3, method, params: commandApproval }))
    const question = await port.until(() => port.asked[0])
    question.answer({ allow: false, comment: 'not on a Friday' })
    await until(() => server.called('turn/steer').length > 0)
  }

  it('answers a dialog with the verdict, and passes the reason of a denial into the running turn', async () => {
    const { port } = await open({ answers: { 'turn/steer': () => ({ result: { turnId: TURN } }) } })
    await denyWithReason(port)
    expect(server.calls.find(({ id, method }) => id === 3 && method === undefined)).toMatchObject({
      result: { decision: 'decline' },
    })
    expect(server.called('turn/steer')[0]!.params).toMatchObject({
      expectedTurnId: TURN,
      input: [{ type: 'text', text: 'not on a Friday' }],
    })
  })

  it('continues if the reason of a denial does not reach the agent', async () => {
    const { port, session, warnings } = await open({ answers: { 'turn/steer': () => undefined } })
    await denyWithReason(port)
    server.drop()
    await port.until(() => port.states.some(({ state }) => state === 'unknown'))
    await port.until(() => session.state === 'idle')
    expect(warnings).toMatchObject([{ text: 'a comment could not be sent to Codex' }])
  })

  it('reports a turn as stopped only when it has ended', async () => {
    const { session } = await open({
      answers: {
        'turn/interrupt': () => {
          server.notify('turn/completed', { threadId: THREAD, turn: turn('interrupted') })
          return undefined
        },
      },
    })
    turnStarted()
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(await session.interrupt()).toEqual({
      stopped: true,
      evidence: `turn ${TURN} ended as interrupted`,
    })
  })

  it('survives a connection that breaks while it lists processes before stopping a turn', async () => {
    const { session, port } = await open({
      async watchOrphans() {
        server.drop()
        await port.until(() => session.state === 'unknown')
        return async () => {}
      },
    })
    turnStarted()
    await new Promise((resolve) => setTimeout(resolve, 50))
    const stopping = session.interrupt()
    await until(() => server.called('thread/resume').length > 1)
    server.notify('turn/completed', { threadId: THREAD, turn: turn('completed') })
    expect(await stopping).toEqual({ stopped: true, evidence: `turn ${TURN} ended as completed` })
    expect(server.called('turn/interrupt')).toEqual([])
  })

  it('finds a message in an earlier conversation of the agent, and reports one that is in none (C25)', async () => {
    const { session } = await open({
      savedState: {
        threads: [
          { id: 'older', since: 1 },
          { id: THREAD, since: 1 },
        ],
      },
      answers: {
        'thread/items/list': ({ params }) => ({
          result: {
            data: params!.threadId === 'older' ? [{ turnId: TURN, item: userMessage(MESSAGE) }] : [],
          },
        }),
      },
    })
    expect(await session.locate(['msg_1'])).toMatchObject([{ at: 'submitted' }])
    const asked = () => server.called('thread/items/list').length
    const before = asked()
    const locations = await session.locate(['msg_2', 'msg_1', 'msg_11'])
    expect(locations.map(({ at }) => at)).toEqual(['absent', 'submitted', 'absent'])
    // Each thread once, and once more for what may have been on its way.
    expect(asked() - before).toBeLessThanOrEqual(4)
  })
})
