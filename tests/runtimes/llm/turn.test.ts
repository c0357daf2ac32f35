import { describe, expect, it } from 'vitest'
import type { Receipt } from '../../../src/protocol/receipt.ts'
import type { ModelReply, Play } from '../../fakes/model-server/play.ts'
import { turnOf } from '../conformance.ts'
import { createDoor, openFixture } from './harness.ts'

const send = (to: string) => ({ name: 'send_message', input: { to, content: 'Hello.' } })

/** A turn that uses a tool, then answers. */
const USES_A_TOOL: Play = [
  { toolResult: /Command executed/, reply: { text: 'Bob has it.' } },
  { reply: { text: 'Writing to Bob.', toolCalls: [send('Bob')] } },
]

async function ready(play: Play, options: Parameters<typeof openFixture>[1] = {}) {
  const fixture = await openFixture(play, options)
  const session = await fixture.start()
  await fixture.port.untilState('idle')
  /** Gives it a turn, and waits for its end. */
  async function ask(text: string, id = 'msg_7') {
    await session.deliver(turnOf(id, text))
    await fixture.port.untilState('idle')
  }
  return { ...fixture, session, ask }
}

describe('a turn of an agent that is a model', () => {
  it('is in the conversation before it counts as submitted, and read when the answer begins (C27)', async () => {
    const { session, port, lines } = await ready(() => ({ text: 'Understood.', delayMs: 100 }))
    const arrival = await session.deliver(turnOf('msg_7', 'Do it.'))
    expect(arrival).toMatchObject({ state: 'submitted', evidence: expect.stringContaining('.jsonl') })
    expect(lines()).toMatchObject([{ type: 'user', ids: ['msg_7'], text: expect.stringContaining('Do it.') }])
    expect(port.arrived).toEqual([])
    await port.untilState('idle')
    expect(port.arrived).toEqual([{ ids: ['msg_7'], state: 'read', evidence: 'the model began to answer' }])
  })

  it('reaches the model with its role, and its text is reported whole, with a key (C4, C25)', async () => {
    const { port, server, ask } = await ready(() => ({
      thinking: 'Hm.',
      text: 'The answer is 42.',
      chunkSize: 4,
    }))
    await ask('What is it?')
    expect(port.said).toEqual([
      { text: 'The answer is 42.', channel: 'api', key: expect.stringMatching(/^[\w-]{36}:2$/) },
    ])
    expect(server.calls()[0]!.request).toMatchObject({ system: 'You write code.', agent: 'coder' })
  })

  it('shows people the text while it arrives', async () => {
    const { session, port, server } = await ready(() => ({
      text: 'one two three',
      chunkSize: 4,
      chunkMs: 150,
    }))
    await session.deliver(turnOf('msg_7', 'Count.'))
    await server.waitFor(({ request }) => request !== undefined)
    await expect.poll(() => session.screen!(10)).toMatch(/^one/)
    expect(port.said).toEqual([])
    await port.untilState('idle')
    expect(await session.screen!(10)).toBe('one two three')
  })

  it('reports its cost and the context usage (C26)', async () => {
    const reply: ModelReply = { text: 'ok', usage: { input: 500, cached: 400, output: 7 } }
    const { port, ask } = await ready(() => reply, { model: { contextWindow: 8000 } })
    await ask('Go.')
    expect(port.used).toEqual([
      {
        model: 'llama',
        contextTokens: 500,
        contextWindow: 8000,
        spent: { key: expect.any(String), input: 100, output: 7, cacheRead: 400, cacheWrite: 0 },
      },
    ])
  })
})

describe('a command as a tool', () => {
  it('is executed as this agent, with a key, and its response goes back to the model (S1.15)', async () => {
    const { port, door, server, ask } = await ready(USES_A_TOOL)
    await ask('Write to Bob.')
    expect(door.asked).toEqual([
      {
        said: { type: 'send_message', fields: { to: 'Bob', content: 'Hello.' } },
        key: expect.stringMatching(/:2:0$/),
      },
    ])
    expect(server.calls()[1]!.request!.toolResults[0]).toContain(
      '[ORCHESTRATOR RESPONSE]\nCommand: send_message',
    )
    expect(port.text()).toBe('Writing to Bob.Bob has it.')
  })

  it('is executed in order when an answer contains several', async () => {
    const play: Play = [
      { toolResult: /./, reply: { text: 'Done.' } },
      { reply: { toolCalls: [send('Bob'), send('Carol'), send('Dave')] } },
    ]
    const { port, door, ask } = await ready(play)
    await ask('Write to all.')
    expect(door.asked.map(({ said }) => said.fields.to)).toEqual(['Bob', 'Carol', 'Dave'])
    expect(port.said.map(({ text }) => text)).toEqual(['Done.'])
  })

  it('returns messages, which are then delivered (C27)', async () => {
    const mail: Receipt = { status: 'ok', result: '1 message', details: { messages: [{ id: 'msg_9' }] } }
    const play: Play = [
      { toolResult: /msg_9/, reply: { text: 'Read it.' } },
      { reply: { toolCalls: [{ name: 'mailbox_check', input: {} }] } },
    ]
    const { session, port, ask } = await ready(play, { door: createDoor(() => mail) })
    await ask('Look.')
    expect(port.arrived.map(({ ids, state }) => [ids, state])).toEqual([
      [['msg_7'], 'read'],
      [['msg_9'], 'submitted'],
      [['msg_9'], 'read'],
    ])
    expect(await session.locate(['msg_9'])).toMatchObject([{ at: 'submitted' }])
  })

  it('has a limit per turn, and the model learns of it in the next turn', async () => {
    let calls = 0
    const loop: Play = (request) => {
      calls += 1
      return request.userText.includes('stop') ? { text: 'Stopped.' } : { toolCalls: [send(`Bob${calls}`)] }
    }
    const { session, port, door, server, ask } = await ready(loop, { settings: { max_steps: 3 } })
    await ask('Loop.')
    expect(port.states.at(-1)!.evidence).toContain('max_steps')
    expect(door.effects).toBe(3)
    await session.deliver(turnOf('msg_8', 'Please stop.'))
    await port.until(() => port.text().includes('Stopped.'))
    expect(server.calls().at(-1)!.request!.userText).toMatch(/ended here: .*max_steps/)
  })

  it('that a rule denies is an error for the model, and the turn continues', async () => {
    const door = createDoor(() => ({ status: 'blocked', reason: 'Bob is off limits' }))
    const play: Play = [
      { toolResult: /Message blocked: Bob is off limits/, reply: { text: 'I may not.' } },
      { reply: { toolCalls: [send('Bob')] } },
    ]
    const { session, port } = await ready(play, { door })
    await session.deliver(turnOf('msg_7', 'Write to Bob.'))
    await port.until(() => port.text() === 'I may not.')
  })
})

describe('a model that does not do as it should', () => {
  it('and refuses: its turn ends, and it gets the next one', async () => {
    const play: Play = [
      { when: /bad/, times: 1, reply: { error: { status: 400, message: 'flagged as harmful' } } },
      { reply: { text: 'Gladly.' } },
    ]
    const { session, port, server, ask } = await ready(play)
    await ask('Something bad.')
    expect(port.states.at(-1)!.evidence).toContain('flagged as harmful')
    await session.deliver(turnOf('msg_8', 'Something nice.'))
    await port.until(() => port.text() === 'Gladly.')
    expect(server.calls().at(-1)!.request!.userText).toContain('it was refused')
  })

  it('and returns no text: it has still answered', async () => {
    const { port, ask } = await ready(() => ({ text: '' }))
    await ask('Well?')
    expect(port.said).toEqual([])
    await ask('Well?', 'msg_8')
  })

  it.each([429, 500])(
    'and fails with %i keeps the message, and answers it when it is back',
    async (status) => {
      const play: Play = [
        { times: 2, reply: { error: { status, message: 'overloaded' } } },
        { reply: { text: 'Here I am.' } },
      ]
      const { session, port, lines, server } = await ready(play)
      expect(await session.deliver(turnOf('msg_7', 'Are you there?'))).toMatchObject({ state: 'submitted' })
      await port.untilState('error')
      expect(port.states.at(-1)!.evidence).toContain('overloaded')
      expect(await session.deliver(turnOf('msg_8', 'And now?'))).toMatchObject({ state: 'queued' })
      await port.until(() => port.text() === 'Here I am.')
      await port.untilState('idle')
      expect(server.calls()).toHaveLength(3)
      expect(lines().filter(({ type }) => type === 'user')).toHaveLength(1)
    },
  )

  it('and sends retry-after: it is not called earlier', async () => {
    const error = { status: 429, headers: { 'retry-after': '90' } }
    const { session, port } = await ready(() => ({ error }))
    await session.deliver(turnOf('msg_7', 'Hello?'))
    await port.untilState('error')
    expect(port.states.at(-1)!.evidence).toContain('Retrying in 90 s.')
  })

  it('and has no API key: the missing variable is reported', async () => {
    const { session, port } = await ready(() => ({ text: 'x' }), { env: {} })
    await session.deliver(turnOf('msg_7', 'Hello?'))
    await port.untilState('error')
    expect(port.states.at(-1)!.evidence).toContain('MODEL_KEY is not set')
  })
})

describe('an interruption (C2)', () => {
  it('aborts the model call, reports none of its text, and tells the model in the next turn', async () => {
    const play: Play = [
      { when: /long/, times: 1, reply: { text: 'word '.repeat(100), chunkSize: 5, chunkMs: 100 } },
      { reply: { text: 'Yes?' } },
    ]
    const { session, port, server } = await ready(play)
    await session.deliver(turnOf('msg_7', 'Tell a long story.'))
    await port.until(() => port.arrived.length === 1)
    expect(await session.interrupt()).toMatchObject({ stopped: true })
    await server.waitFor(({ state }) => state === 'aborted')
    expect(port.states.at(-1)).toMatchObject({
      state: 'idle',
      evidence: expect.stringContaining('interrupted'),
    })
    expect(port.said).toEqual([])
    await session.deliver(turnOf('msg_8', 'Hey.'))
    await port.until(() => port.text() === 'Yes?')
    expect(server.calls().at(-1)!.request!.userText).toMatch(/story[\s\S]*interrupted here[\s\S]*Hey\./)
    // Two in a row from the same side are more than some models take.
    const { messages } = JSON.parse(server.calls().at(-1)!.body) as { messages: { role: string }[] }
    expect(messages.map(({ role }) => role)).toEqual(['system', 'user'])
  })

  it('skips later commands of the answer, and records so in the conversation', async () => {
    const begun = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    const door = createDoor(async () => {
      begun.resolve()
      await goOn.promise
      return { status: 'ok', result: 'Command executed' }
    })
    const { session, lines, port } = await ready(() => ({ toolCalls: [send('Bob'), send('Carol')] }), {
      door,
    })
    await session.deliver(turnOf('msg_7', 'Write to both.'))
    await begun.promise
    const interrupted = session.interrupt()
    goOn.resolve()
    expect(await interrupted).toMatchObject({ stopped: true })
    expect(door.asked.map(({ said }) => said.fields.to)).toEqual(['Bob'])
    expect(lines().slice(-2)).toMatchObject([
      { type: 'result', index: 1, isError: true, text: expect.stringContaining('Not executed') },
      { type: 'end', how: 'interrupted' },
    ])
    expect(port.states.at(-1)!.state).toBe('idle')
  })

  it('does not report a turn as stopped whose command still runs', async () => {
    const door = createDoor(() => new Promise<never>(() => {}))
    const { session, port } = await openAndHang(door)
    expect(await session.interrupt()).toMatchObject({ stopped: false })
    expect(port.states.at(-1)!.state).toBe('busy')
  })

  async function openAndHang(door: ReturnType<typeof createDoor>) {
    const begun = Promise.withResolvers<void>()
    const command: typeof door.command = (said, key) => {
      begun.resolve()
      return Promise.race([door.command(said, key), stopped.promise])
    }
    const stopped = Promise.withResolvers<never>()
    const fixture = await openFixture(() => ({ toolCalls: [send('Bob')] }), { limits: { interruptMs: 50 } })
    const session = await fixture.start({ command })
    await fixture.port.untilState('idle')
    await session.deliver(turnOf('msg_7', 'Write.'))
    await begun.promise
    setTimeout(() => stopped.reject(new Error('the test is over')), 500)
    return { ...fixture, session }
  }

  it('ends a turn that waits for a retry of its model', async () => {
    const play: Play = [
      { when: /first/, times: 1, reply: { error: { status: 500 } } },
      { reply: { text: 'Yes?' } },
    ]
    const { session, port } = await ready(play, { limits: { failureMs: 60_000, maxFailureMs: 60_000 } })
    await session.deliver(turnOf('msg_7', 'The first.'))
    await port.untilState('error')
    expect(await session.interrupt()).toMatchObject({ stopped: true })
    await port.untilState('idle')
    await session.deliver(turnOf('msg_8', 'The second.'))
    await port.until(() => port.text() === 'Yes?')
  })
})

describe('a notice (C2)', () => {
  it.each(['openai-compatible', 'anthropic'] as const)(
    'is told between two steps of the running turn (%s)',
    async (wire) => {
      const asked = Promise.withResolvers<void>()
      const goOn = Promise.withResolvers<void>()
      const door = createDoor(async () => {
        asked.resolve()
        await goOn.promise
        return { status: 'ok', result: 'Command executed' }
      })
      const { session, port, server } = await ready(USES_A_TOOL, { door, wire })
      await session.deliver(turnOf('msg_7', 'Write to Bob.'))
      await asked.promise
      await session.notice('[ORCHUB NOTICE] Mail waits.')
      goOn.resolve()
      await port.untilState('idle')
      const { toolResults, userText } = server.calls()[1]!.request!
      expect(toolResults).toHaveLength(1)
      expect(userText).toBe('[ORCHUB NOTICE] Mail waits.')
    },
  )

  it('comes once with the next turn when no turn runs', async () => {
    const { session, server, ask } = await ready(() => ({ text: 'ok' }))
    await session.notice('[ORCHUB NOTICE] Mail waits.')
    for (const id of ['msg_7', 'msg_8']) {
      await ask('Go.', id)
    }
    const told = server.calls().map(({ request }) => request!.userText.includes('Mail waits.'))
    expect(told).toEqual([true, false])
  })
})

describe('a long conversation', () => {
  it('omits its oldest turns with a note, and keeps them in the file', async () => {
    const { session, server, lines, ask } = await ready(() => ({ text: 'ok' }), {
      settings: { history_tokens: 500 },
    })
    for (let turn = 1; turn <= 6; turn += 1) {
      await ask(`Turn-${turn} ${'x'.repeat(600)}`, `msg_${turn}`)
    }
    const { body } = server.calls().at(-1)!
    expect(body).toContain('Turn-6')
    expect(body).not.toContain('Turn-1 ')
    expect(body).toMatch(/\d earlier turns of this conversation omitted/)
    expect(lines().filter(({ type }) => type === 'user')).toHaveLength(6)
    expect(await session.locate(['msg_1'])).toMatchObject([{ at: 'submitted' }])
  })

  it('is cut in half when the model says that it is too long, until it fits', async () => {
    const error = {
      status: 400,
      code: 'context_length_exceeded',
      message: 'maximum context length is 9 tokens',
    }
    const { session, port, server, ask } = await ready(() => ({ text: 'ok' }))
    for (let turn = 1; turn <= 4; turn += 1) {
      await ask(`Turn-${turn}`, `msg_${turn}`)
    }
    server.setPlay([{ times: 1, reply: { error } }, { reply: { text: 'It fits.' } }])
    await session.deliver(turnOf('msg_5', 'Turn-5'))
    await port.until(() => port.text().endsWith('It fits.'))
    expect(server.calls().at(-1)!.body).not.toContain('Turn-1')
    server.setPlay(() => ({ error }))
    await port.untilState('idle')
    await ask('Turn-6', 'msg_6')
    expect(port.states.at(-1)!.evidence).toContain('maximum context length')
  })
})
