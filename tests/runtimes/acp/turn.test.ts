import { describe, expect, it } from 'vitest'
import { startIdle, turn } from './harness.ts'

const never = { signMs: 300 }

describe('a turn of an ACP agent', () => {
  it('is read when the agent answers, and the agent is busy until the turn ends (C27)', async () => {
    const { session, states, reaches, said } = await startIdle()
    const arrival = await session.deliver(turn('SAY hello\nSLEEP 150', 'msg_1'))
    expect(arrival).toEqual({ state: 'read', evidence: 'the agent began to answer' })
    expect(session.state).toBe('busy')
    expect(await reaches('idle')).toBe('turn 1 ended: end_turn')
    expect(states.map(({ state }) => state)).toEqual(['idle', 'busy', 'idle'])
    expect(said.join('')).toBe('hello')
  })

  it('is read without text of the agent once session/prompt was answered', async () => {
    const { session } = await startIdle()
    const arrival = await session.deliver(turn('nothing to do', 'msg_1'))
    expect(arrival).toEqual({ state: 'read', evidence: 'session/prompt was answered: end_turn' })
  })

  it('is submitted by the echo of its id, and read later (C27)', async () => {
    const { session, arrived, until } = await startIdle()
    const echo = {
      sessionUpdate: 'user_message_chunk',
      content: { type: 'text', text: '[ORCHUB MESSAGE msg_1]' },
    }
    const arrival = await session.deliver(turn(`UPDATE ${JSON.stringify(echo)}\nSLEEP 100\nSAY now`, 'msg_1'))
    expect(arrival.state).toBe('submitted')
    await until(() => arrived.length > 0)
    expect(arrived).toMatchObject([{ ids: ['msg_1'], state: 'read' }])
  })

  it('is not submitted by unrelated updates', async () => {
    const { session } = await startIdle({ limits: never })
    const others = [
      '{"sessionUpdate":"available_commands_update","availableCommands":[]}',
      '{"sessionUpdate":"usage_update","used":1,"size":10}',
      '{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"[ORCHUB MESSAGE msg_9]"}}',
    ]
    const lines = [...others.map((json) => `UPDATE ${json}`), 'OTHERS text', 'DEAF'].join('\n')
    expect(await session.deliver(turn(lines, 'msg_1'))).toEqual({
      state: 'uncertain',
      evidence: 'no evidence of it within 0.3 s',
    })
    expect((await session.locate(['msg_1']))[0]?.at).toBe('unknown')
  })

  it('that was uncertain still arrives when the evidence comes late (C25)', async () => {
    const { session, arrived, until } = await startIdle({ limits: { signMs: 50 } })
    expect((await session.deliver(turn('SLEEP 200\nSAY late', 'msg_1', 'msg_2'))).state).toBe('uncertain')
    await until(() => arrived.length > 0)
    expect(arrived[0]).toMatchObject({ ids: ['msg_1', 'msg_2'], state: 'read' })
    expect((await session.locate(['msg_2']))[0]?.at).toBe('submitted')
  })

  it('is not begun while another one runs', async () => {
    const { session } = await startIdle()
    await session.deliver(turn('SAY one\nDEAF', 'msg_1'))
    expect(await session.deliver(turn('SAY two', 'msg_2'))).toEqual({
      state: 'queued',
      evidence: 'the agent is busy',
    })
  })

  it('is not begun when it is no longer wanted, as after a pause (S1.24)', async () => {
    const { session, states } = await startIdle()
    const gone = AbortSignal.abort('it was paused')
    expect(await session.deliver(turn('SAY one', 'msg_1'), gone)).toEqual({
      state: 'queued',
      evidence: 'no longer wanted: it was paused',
    })
    expect(states.map(({ state }) => state)).toEqual(['idle'])
    expect((await session.locate(['msg_1']))[0]?.at).toBe('absent')
  })

  it('carries any text unchanged: multi-line, 100 KB, controls of the protocol, emoji (C17)', async () => {
    const { session, fixture } = await startIdle({ flags: ['--system-prompt'] })
    const text = `!ls\n/quit\n\ttab @x 👩‍🚀 \u001B[201~ {"jsonrpc":"2.0"}\n${'é'.repeat(50_000)}\\`
    await session.deliver({ text, ids: [] })
    expect(fixture.record('prompt')).toEqual([text])
  })

  it('escapes file names for an agent that reads them', async () => {
    const { session, fixture } = await startIdle({
      flags: ['--system-prompt'],
      settings: { mentions: 'alone' },
    })
    await session.deliver({ text: 'see @x, me@example.com', ids: [] })
    expect(fixture.record('prompt')).toEqual(['see \\@x, me@example.com'])
  })

  it('stays queued when the agent rejects it, and nothing else is tried for a while', async () => {
    const { session, reaches, states } = await startIdle({ limits: { failureMs: 200 } })
    const arrival = await session.deliver(turn('FAIL -32000', 'msg_1'))
    expect(arrival.state).toBe('queued')
    expect((await session.locate(['msg_1']))[0]?.at).toBe('absent')
    expect(await reaches('error')).toMatch(/^turn 1 failed: failed as told \(-32000: the model is away\)/)
    expect((await session.deliver(turn('SAY x', 'msg_1'))).state).toBe('queued')
    await reaches('idle')
    expect(states.at(-1)?.evidence).toBe('ready to try again')
  })

  it('is uncertain when the agent fails on it, since it may have it', async () => {
    const { session } = await startIdle()
    expect(await session.deliver(turn('FAIL -32603', 'msg_1'))).toMatchObject({ state: 'uncertain' })
    expect((await session.locate(['msg_1']))[0]?.at).toBe('unknown')
  })

  it('stays read when the agent fails after it began to answer', async () => {
    const { session, reaches, said } = await startIdle()
    expect((await session.deliver(turn('SAY begun\nFAIL -32603', 'msg_1'))).state).toBe('read')
    await reaches('error')
    expect(said.join('')).toBe('begun')
    expect((await session.locate(['msg_1']))[0]?.at).toBe('submitted')
  })

  it('reports its cost and the context usage (C26)', async () => {
    const { session, used, reaches } = await startIdle()
    await session.deliver(turn('UPDATE {"sessionUpdate":"usage_update","used":900,"size":1000}', 'msg_1'))
    await reaches('idle')
    expect(used).toEqual([
      { contextTokens: 900, contextWindow: 1000 },
      { spent: { key: expect.stringMatching(/:1$/), input: 100, output: 20, cacheRead: 5, cacheWrite: 0 } },
    ])
  })
})

describe('the text of an ACP agent', () => {
  it('is its own messages only: no thoughts, tools, echoes, helpers, other sessions (C4)', async () => {
    const { session, said, reaches } = await startIdle()
    const chunk = (sessionUpdate: string, text: string, more = {}) =>
      `UPDATE ${JSON.stringify({ sessionUpdate, content: { type: 'text', text }, ...more })}`
    const lines = [
      'THINK a thought',
      'TOOL a tool',
      chunk('user_message_chunk', 'an echo'),
      chunk('agent_message_chunk', 'a helper', { _meta: { claudeCode: { parentToolUseId: 't' } } }),
      'OTHERS elsewhere',
      'UPDATE {"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"AAAA","mimeType":"image/png"}}',
      'UPDATE {"sessionUpdate":"agent_message_chunk"}',
      'UPDATE {"sessionUpdate":"notice","severity":"warning","title":"a warning"}',
      'SAY mine',
    ]
    await session.deliver(turn(lines.join('\n'), 'msg_1'))
    await reaches('idle')
    expect(said).toEqual(['mine'])
  })

  it('is processed at once, while the turn continues', async () => {
    const { session, said, until } = await startIdle()
    await session.deliver(turn('SAY now\nDEAF', 'msg_1'))
    await until(() => said.length > 0)
    expect(session.state).toBe('busy')
  })

  it('is processed in order before the turn counts as ended', async () => {
    const { session, said, states, reaches } = await startIdle()
    await session.deliver(turn(Array.from({ length: 200 }, (_, i) => `SAY ${i},`).join('\n'), 'msg_1'))
    await reaches('idle')
    expect(said.join('')).toBe(Array.from({ length: 200 }, (_, i) => `${i},`).join(''))
    expect(states.at(-1)?.state).toBe('idle')
  })

  it('lets the turn end although its response waits for that', async () => {
    // As the engine does: what an agent asked for is answered in its next turn.
    const { session, reaches, said } = await startIdle({ hear: () => new Promise(() => {}) })
    await session.deliver(turn(Array.from({ length: 120 }, (_, i) => `SAY ${i}\nTOOL t`).join('\n'), 'msg_1'))
    await reaches('idle')
    expect(said).toHaveLength(120)
  })

  it('does not run together when a message ends: by its id, by a tool, by the turn', async () => {
    const { session, said, reaches } = await startIdle()
    await session.deliver(turn('SAYAS a one\nSAYAS a +one\nSAYAS b two\nTOOL t\nSAYAS b three', 'msg_1'))
    await reaches('idle')
    await session.deliver(turn('SAY four', 'msg_2'))
    await reaches('idle')
    expect(said.join('')).toBe('one+one\n\ntwo\n\nthree\n\nfour')
  })

  it('is not split by other events while it arrives', async () => {
    const { session, said, reaches } = await startIdle()
    const meanwhile = '{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}'
    await session.deliver(turn(`SAY <orc-\nTHINK hm\nUPDATE ${meanwhile}\nSAY command>`, 'msg_1'))
    await reaches('idle')
    expect(said.join('')).toBe('<orc-command>')
  })

  it('is shown on its screen, with the tools it used', async () => {
    const { session, reaches } = await startIdle()
    await session.deliver(turn('SAY hello\\n\u001B[31mred\nTOOL ls -l\nSAY done', 'msg_1'))
    await reaches('idle')
    expect(await session.screen?.(10)).toBe('hello\nred\n[ls -l]\ndone')
    expect(await session.screen?.(1)).toBe('done')
  })
})
