import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { OpenCodeSavedState } from '../../../src/programs/opencode/conversations.ts'
import { openSession } from '../../../src/programs/opencode/session.ts'
import type { ProgramSession } from '../../../src/programs/program.ts'
import { createRecordingPort, type RecordingPort } from '../../fakes/recording-port.ts'
import { type FakeServer, OWN, recorded, startFakeServer } from './fake-server.ts'

describe('a session of opencode', () => {
  let server: FakeServer
  let port: RecordingPort
  let session: ProgramSession
  const unexpected: unknown[] = []

  beforeEach(async () => {
    server = await startFakeServer()
    port = createRecordingPort()
    unexpected.length = 0
    bootedAt = 1_000_000
  })
  afterEach(async () => {
    await session.close('leave')
    await server.close()
  })

  /** Boot time by a clock that only the tests set. */
  let bootedAt = 1_000_000

  async function follow(
    savedState: Partial<OpenCodeSavedState> = { conversations: [{ id: OWN, since: 1 }] },
  ) {
    session = openSession({
      bootedAt: () => bootedAt,
      name: 'dev',
      found: false,
      savedState: { port: 1, conversations: [], ...savedState },
      server: server.api,
      port: port,
      view: async () => 'other',
      warn: (fields) => unexpected.push(fields),
    })
    await port.until(() => session.state !== 'initializing')
  }

  const spoken = () => port.said.map(({ text }) => text)
  const states = () => port.states.map(({ state }) => state)
  const userMessage = (id: string, text: string, created = 10) => ({
    info: { id, sessionID: OWN, role: 'user' as const, time: { created } },
    parts: [{ id: `prt_${id}`, sessionID: OWN, messageID: id, type: 'text', text }],
  })
  const answer = (id: string, parentID: string, text: string, created = 11) => ({
    info: {
      id,
      parentID,
      sessionID: OWN,
      role: 'assistant' as const,
      time: { created, completed: created + 1 },
    },
    parts: [
      {
        ...{ id: `prt_${id}`, sessionID: OWN, messageID: id, type: 'text', text },
        time: { start: created, end: created + 1 },
      },
    ],
  })

  it('starts a conversation, saves it and shows it in the pane', async () => {
    await follow({})
    expect(session.state).toBe('idle')
    expect(server.calls[0]).toEqual({ path: '/session', body: { title: 'dev' } })
    expect(port.savedState).toEqual({ port: 1, conversations: [{ id: OWN, since: 0 }] })
    await server.called('/tui/select-session')
  })

  it('reads its text after the clock was set back to before its start (C4)', async () => {
    await follow({})
    const { info, parts } = answer('msg_a2', 'msg_a1', 'still here', 0)
    server.emit(JSON.stringify({ type: 'message.updated', properties: { info } }))
    for (const part of parts)
      server.emit(JSON.stringify({ type: 'message.part.updated', properties: { part } }))
    await port.until(() => spoken().includes('still here'))
  })

  it('passes on a complete text once, with its key, and saves the position (C4, C25)', async () => {
    await follow()
    server.emit(...recorded('turn'))
    await port.until(() => states().at(-1) === 'idle' && port.said.length > 0)
    expect(port.said).toEqual([
      {
        text: 'FAKE REPLY to <<[ORCHUB MESSAGE msg_1]\nhello\n[END ORCHUB MESSAGE msg_1]>>',
        channel: 'api',
        key: 'prt_1ddf10916001iIbV3VsazKG55J',
      },
    ])
    await port.until(
      () => (port.savedState as OpenCodeSavedState).saidUpTo === 'msg_1ddf101b5001lmB9taSyNcTFM1',
    )
    expect(states()).toEqual(['idle', 'busy', 'idle'])
  })

  it('reports that a message is in the conversation, and then that its answer began', async () => {
    await follow()
    server.emit(...recorded('turn'))
    await port.until(() => port.arrived.length === 2)
    expect(port.arrived).toMatchObject([
      { ids: ['msg_1'], state: 'submitted', evidence: expect.stringContaining('msg_1ddf10142001') },
      { ids: ['msg_1'], state: 'read', evidence: expect.stringContaining('msg_1ddf101b5001') },
    ])
  })

  it('reports cost and context usage (C26)', async () => {
    await follow()
    server.emit(...recorded('turn'))
    await port.until(() => port.used.length > 0)
    expect(port.used).toEqual([
      {
        model: 'fake/m',
        contextTokens: 10,
        contextWindow: 100_000,
        spent: { key: 'msg_1ddf101b5001lmB9taSyNcTFM1', input: 10, output: 5, cacheRead: 0, cacheWrite: 0 },
      },
    ])
  })

  it('waits longer for the context window than for other responses of a server under load (C26)', async () => {
    const timeout = AbortSignal.timeout
    vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => timeout(ms / 20))
    try {
      server.delay('/config/providers', 1_000)
      await follow()
      server.emit(...recorded('turn'))
      await port.until(() => port.used.length > 0)
      expect(port.used).toMatchObject([{ contextTokens: 10, contextWindow: 100_000 }])
    } finally {
      vi.restoreAllMocks()
    }
  })

  it('asks for permission and returns the verdict', async () => {
    await follow()
    const events = recorded('permission')
    const replied = events.findIndex((line) => line.includes('permission.replied'))
    server.emit(...events.slice(0, replied))
    const question = await port.until(() => port.asked[0])
    expect(question).toMatchObject({
      key: 'per_1ddf1a8d2001osg3nFCX3mKGlw',
      tool: 'bash',
      input: { command: 'echo perm1', patterns: ['echo perm1'] },
    })
    expect(session.state).toBe('waiting_input')
    question.answer({ allow: true })
    await server.called('/permission/per_1ddf1a8d2001osg3nFCX3mKGlw/reply')
    expect(server.calls.at(-1)!.body).toEqual({ reply: 'once' })
    server.emit(...events.slice(replied))
    await port.until(() => spoken().includes('TOOL SAID: perm1\n') && session.state === 'idle')
  })

  it('reports every denial to the agent, so that its turn continues (C9)', async () => {
    await follow()
    server.emit(...recorded('permission').slice(0, 12))
    const question = await port.until(() => port.asked[0])
    question.answer({ allow: false })
    await server.called(`/permission/${question.key}/reply`)
    expect(server.calls.at(-1)!.body).toEqual({ reply: 'reject', message: 'A person denied it.' })
  })

  it('closes the request when it is answered in the pane', async () => {
    await follow()
    server.emit(...recorded('permission'))
    const question = await port.until(() => port.asked[0])
    await port.until(() => question.isGone)
    await port.until(() => session.state === 'idle')
    expect(server.calls).toEqual([])
  })

  it('does not pass on a text that an interruption cut (C5)', async () => {
    await follow()
    server.emit(...recorded('interrupted-text'), ...recorded('turn'))
    await port.until(() => port.said.length > 0)
    expect(spoken()).toEqual([expect.stringContaining('ORCHUB MESSAGE msg_1')])
  })

  it('closes the dialog that an interrupted turn leaves on the screen', async () => {
    await follow()
    server.emit(...recorded('interrupted-permission').slice(0, -1))
    await server.called('/permission/per_1ddf231c8001NbGmAK6uMfQ1m1/reply')
    expect(server.calls.at(-1)!.body).toEqual({ reply: 'reject' })
    server.emit(...recorded('interrupted-permission').slice(-1))
    await port.until(() => session.state === 'idle')
    expect(port.asked[0]!.isGone).toBe(true)
  })

  it('ignores text of a subagent, but counts its cost (C4)', async () => {
    await follow()
    server.emit(...recorded('subagent'))
    await port.until(() => states().at(-1) === 'idle' && port.said.length === 2)
    expect(spoken()).toEqual(['FAKE REPLY to <<TASKTOOL>>', expect.stringMatching(/^TOOL SAID/)])
    await port.until(() => port.used.length === 3)
    expect(port.used.filter(({ contextTokens }) => contextTokens === undefined)).toHaveLength(1)
  })

  it('does not pass on the summary of a compacted context (C4)', async () => {
    await follow()
    server.emit(...recorded('compaction'), ...recorded('turn'))
    await port.until(() => port.said.length > 0)
    expect(spoken()).toEqual([expect.stringContaining('ORCHUB MESSAGE msg_1')])
  })

  it('passes on only complete text when the connection to the model breaks', async () => {
    await follow()
    server.emit(...recorded('broken-connection'))
    await port.until(() => states().length === 3)
    await port.until(() => port.said.length > 0)
    expect(spoken()).toEqual([expect.stringMatching(/^FAKE REPLY to <<BREAKTEXT .* all>>$/)])
  })

  it('catches up after a lost connection, and repeats nothing', async () => {
    await follow()
    server.setMessages([userMessage('msg_a1', 'hi'), answer('msg_a2', 'msg_a1', 'Said before.')])
    server.drop()
    await port.until(() => spoken().includes('Said before.'))
    expect(states()).toContain('unknown')
    server.setMessages([
      userMessage('msg_a1', 'hi'),
      answer('msg_a2', 'msg_a1', 'Said before.'),
      userMessage('msg_a3', '[ORCHUB MESSAGE msg_7]\nx\n[END ORCHUB MESSAGE msg_7]'),
      answer('msg_a4', 'msg_a3', 'Said meanwhile.'),
      answer('msg_a5', 'msg_a3', 'And this.'),
    ])
    server.drop()
    await port.until(() => spoken().includes('And this.'))
    expect(spoken()).toEqual(['Said before.', 'Said meanwhile.', 'And this.'])
    expect(port.arrived).toMatchObject([
      { ids: ['msg_7'], state: 'submitted' },
      { ids: ['msg_7'], state: 'read' },
    ])
  })

  it('continues at its position after a restart', async () => {
    server.setMessages([
      userMessage('msg_a1', 'hi'),
      answer('msg_a2', 'msg_a1', 'Long ago.'),
      answer('msg_a3', 'msg_a1', 'Kept.'),
      answer('msg_a4', 'msg_a1', 'New.'),
    ])
    await follow({ conversations: [{ id: OWN, since: 1 }], saidUpTo: 'msg_a3' })
    await port.until(() => spoken().includes('New.'))
    expect(spoken()).toEqual(['Kept.', 'New.'])
  })

  describe('whose clock was set back', () => {
    const earlier = answer('msg_b2', 'msg_b1', 'Before that.', 1000)
    const meanwhile = answer('msg_a2', 'msg_b1', 'After that.', 500)
    const later = answer('msg_a4', 'msg_b1', 'Much later.', 510)
    const savedState = { conversations: [{ id: OWN, since: 0 }], saidUpTo: 'msg_b2', bootedAt: 1_000_000 }

    it('passes on text from while the service was away, even if it sorts before processed text (C4)', async () => {
      bootedAt -= 3600_000
      server.setMessages([meanwhile, earlier])
      await follow(savedState)
      await port.until(() => spoken().includes('After that.'))
    })

    it('passes on later text too, until one was read live', async () => {
      bootedAt -= 3600_000
      server.setMessages([meanwhile, earlier])
      await follow(savedState)
      await port.until(
        () => port.said.length === 2 && (port.savedState as OpenCodeSavedState).saidUpTo === 'msg_b2',
      )
      await session.close('leave')
      server.setMessages([meanwhile, later, earlier])
      await follow(port.savedState as OpenCodeSavedState)
      await port.until(() => spoken().includes('Much later.'))
    })

    it('continues from the text that was read live', async () => {
      bootedAt -= 3600_000
      await follow(savedState)
      const { info, parts } = later
      server.emit(JSON.stringify({ type: 'message.updated', properties: { info } }))
      for (const part of parts)
        server.emit(JSON.stringify({ type: 'message.part.updated', properties: { part } }))
      await port.until(() => (port.savedState as OpenCodeSavedState | undefined)?.saidUpTo === 'msg_a4')
      expect(port.savedState).toMatchObject({ bootedAt })
    })
  })

  it('ignores text that a fork copied into the conversation', async () => {
    server.setMessages([
      userMessage('msg_a1', 'hi', 5),
      answer('msg_a2', 'msg_a1', 'In the other one.', 6),
      answer('msg_a3', 'msg_a1', 'Here.', 100),
    ])
    await follow({ conversations: [{ id: OWN, since: 50 }] })
    await port.until(() => port.said.length > 0)
    expect(spoken()).toEqual(['Here.'])
  })

  it('closes dialogs that were answered while the connection was lost', async () => {
    server.answers['/permission'] = [
      { id: 'per_1', sessionID: OWN, permission: 'edit', patterns: ['a.ts'], metadata: {} },
    ]
    await follow()
    expect(session.state).toBe('waiting_input')
    server.answers['/permission'] = []
    server.drop()
    await port.until(() => session.state === 'idle')
    expect(port.asked).toMatchObject([{ key: 'per_1', isGone: true }])
  })

  it('delivers a message, with its place in the conversation as evidence', async () => {
    await follow()
    const [message, part] = recorded('turn')
    const turn = { text: '[ORCHUB MESSAGE msg_1]\nhello\n[END ORCHUB MESSAGE msg_1]', ids: ['msg_1'] }
    const arrival = session.deliver(turn)
    await server.called(`/session/${OWN}/prompt_async`)
    expect(server.calls.at(-1)!.body).toEqual({ parts: [{ type: 'text', text: turn.text }] })
    server.emit(message!, part!)
    expect(await arrival).toMatchObject({
      state: 'submitted',
      evidence: expect.stringContaining('msg_1ddf10142'),
    })
    expect(session.state).toBe('busy')
  })

  it('does not mistake an equal earlier text for a turn without ids', async () => {
    const text = '[ORCHESTRATOR RESPONSE]\nok\n[END ORCHESTRATOR RESPONSE]'
    const earlier = [userMessage('msg_a1', text), answer('msg_a2', 'msg_a1', 'fine')]
    server.setMessages(earlier)
    await follow()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const deliver = async (messages: Parameters<FakeServer['setMessages']>[0]) => {
        const asked = server.calls.length
        const arrival = session.deliver({ text, ids: [] })
        await expect.poll(() => server.calls.length).toBe(asked + 1)
        server.setMessages(messages)
        // The answer to the request is on its way; only then does it wait for the event.
        await new Promise((resolve) => setImmediate(resolve))
        await expect.poll(() => vi.getTimerCount()).toBeGreaterThan(0)
        await vi.advanceTimersByTimeAsync(10_000)
        return await arrival
      }
      expect(await deliver(earlier)).toMatchObject({ state: 'uncertain' })
      expect(await deliver([...earlier, userMessage('msg_a3', text)])).toMatchObject({
        ...{ state: 'submitted', evidence: expect.stringContaining('msg_a3') },
      })
    } finally {
      vi.useRealTimers()
    }
  })

  it('queues a message that the program refused', async () => {
    await follow()
    server.refuse()
    expect(await session.deliver({ text: 'x', ids: [] })).toMatchObject({ state: 'queued' })
  })

  it('gives a busy agent only a notice, without a separate turn (C2)', async () => {
    server.answers['/session/status'] = { [OWN]: { type: 'busy' } }
    await follow()
    expect(await session.deliver({ text: 'x', ids: [] })).toMatchObject({ state: 'queued' })
    await session.notice('1 message waits')
    expect(server.calls).toEqual([
      {
        path: `/session/${OWN}/prompt_async`,
        body: { noReply: true, parts: [{ type: 'text', text: '1 message waits' }] },
      },
    ])
  })

  it('locates a message in the conversation, or reports that it is unknown', async () => {
    server.setMessages([
      userMessage('msg_a1', '[ORCHUB MESSAGE msg_7]\nx\n[END ORCHUB MESSAGE msg_7]'),
      ...['msg_a2', 'msg_a3', 'msg_a4'].map((id) => answer(id, 'msg_a1', '[ORCHUB MESSAGE msg_8]')),
    ])
    await follow()
    expect(await session.locate(['msg_7'])).toMatchObject([{ at: 'submitted' }])
    // The agent's own text is no evidence.
    const locations = await session.locate(['msg_8', 'msg_7', 'msg_70'])
    expect(locations.map(({ at }) => at)).toEqual(['absent', 'submitted', 'absent'])
    await server.close()
    expect(await session.locate(['msg_7'])).toMatchObject([{ at: 'unknown' }])
    server = await startFakeServer()
  })

  it('does not report a message as absent that an earlier service sent right before its end (C25)', async () => {
    await follow()
    const located = session.locate(['msg_7'])
    setTimeout(() => {
      server.setMessages([userMessage('msg_a1', '[ORCHUB MESSAGE msg_7]\nx\n[END ORCHUB MESSAGE msg_7]')])
    }, 500)
    expect(await located).toMatchObject([{ at: 'submitted' }])
  })

  it('does not report a message as absent while its request is unanswered (C25)', async () => {
    await follow()
    const delivery = session.deliver({
      text: '[ORCHUB MESSAGE msg_1]\nhello\n[END ORCHUB MESSAGE msg_1]',
      ids: ['msg_1'],
    })
    expect(await session.locate(['msg_1'])).toMatchObject([{ at: 'unknown' }])
    server.emit(...recorded('turn').slice(0, 2))
    expect(await delivery).toMatchObject({ state: 'submitted' })
  })

  it('sends nothing that is no longer wanted', async () => {
    await follow()
    const arrival = await session.deliver({ text: 'x', ids: [] }, AbortSignal.abort('the agent was paused'))
    expect(arrival).toEqual({ state: 'queued', evidence: 'no longer wanted: the agent was paused' })
    expect(server.calls).toEqual([])
  })

  it('reports a turn as stopped only when the program is idle (C2)', async () => {
    server.answers['/session/status'] = { [OWN]: { type: 'busy' } }
    await follow()
    const stopped = session.interrupt()
    await server.called(`/session/${OWN}/abort`)
    server.emit(`{"type":"session.status","properties":{"sessionID":"${OWN}","status":{"type":"idle"}}}`)
    expect(await stopped).toMatchObject({ stopped: true })
  })

  it('logs an unexpected event and continues', async () => {
    await follow()
    server.emit(
      '{"type":"session.status","properties":{"other":1}}',
      '{"type":"brand.new"}',
      ...recorded('turn'),
    )
    await port.until(() => port.said.length > 0)
    expect(unexpected).toHaveLength(1)
  })

  it('stays exited once its process ended, and asks nothing', async () => {
    server.answers['/permission'] = [{ id: 'per_1', sessionID: OWN, permission: 'edit' }]
    await follow()
    session.onExit('exit status 1')
    expect(session.state).toBe('exited')
    expect(port.states.at(-1)).toEqual({ state: 'exited', evidence: 'exit status 1' })
    expect(port.asked[0]!.isGone).toBe(true)
  })
})
