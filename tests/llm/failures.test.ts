import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { ModelSettings } from '../../src/llm/llm.ts'
import type { ModelReply } from '../fakes/model-server/play.ts'
import { REAL_CLOCK } from '../fakes/real-clock.ts'
import { createHasteClock, deadUrl, KEY, modelsAt, openRawServer, openServer } from './harness.ts'

const ASK = { model: 'fast', schema: z.object({ fine: z.boolean() }), prompt: 'Is it?', purpose: 'test' }
const STREAM = {
  model: 'fast',
  system: 'Be brief.',
  messages: [{ role: 'user', text: 'Hi.' }],
  tools: [],
} as const
const FINE: ModelReply = { text: '{"fine": true}' }

/** Answers one after the other; the last one from then on. */
function inTurn(...replies: ModelReply[]) {
  let next = 0
  return () => replies[Math.min(next++, replies.length - 1)]!
}

describe('an answer that does not match its schema', () => {
  it('is requested again once, with the error', async () => {
    const server = await openServer(inTurn({ text: '{"fine": "maybe"}' }, FINE))
    expect(await modelsAt(server.url).generateObject(ASK)).toMatchObject({ ok: true, value: { fine: true } })
    expect(server.requests).toHaveLength(2)
    expect(server.requests[1]!.request!.userText).toMatch(/cannot be used: fine: /)
  })

  it('is a failure the second time, as a value', async () => {
    const server = await openServer(inTurn({ text: 'I would rather write a poem.' }))
    const answer = await modelsAt(server.url).generateObject(ASK)
    expect(answer).toMatchObject({
      ok: false,
      code: 'garbage',
      message: expect.stringContaining('not JSON'),
    })
    expect(server.requests).toHaveLength(2)
  })

  it('is part of the cost', async () => {
    const server = await openServer(inTurn({ text: 'no', usage: { input: 10, output: 2 } }))
    const spent: number[] = []
    await modelsAt(server.url).generateObject({ ...ASK, spent: ({ input }) => spent.push(input) })
    expect(spent).toEqual([10, 10])
  })

  it.each([
    ['in a fence', '```json\n{"fine": true}\n```'],
    ['with words around it', 'Certainly! {"fine": true} Anything else?'],
  ])('is not what stands %s', async (_, text) => {
    const server = await openServer(inTurn({ text }))
    expect(await modelsAt(server.url).generateObject(ASK)).toMatchObject({ ok: true, value: { fine: true } })
    expect(server.requests).toHaveLength(1)
  })

  it.each([
    ['send', '{"to": ', 'not a JSON object'],
    ['send', '[1]', 'not a JSON object'],
    ['launch', '{}', 'no tool "launch"'],
  ])('in a call of the tool %s with %s is reported as an invalid call', async (name, written, why) => {
    const url = await openRawServer((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const send = (data: unknown) => response.write(`data: ${JSON.stringify(data)}\n\n`)
      const call = { index: 0, id: 'c1', type: 'function', function: { name, arguments: written } }
      send({ choices: [{ index: 0, delta: { tool_calls: [call] }, finish_reason: null }] })
      send({ choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] })
      response.end('data: [DONE]\n\n')
    })
    const tools = [{ name: 'send', description: 'Sends.', schema: { type: 'object', properties: {} } }]
    expect(await modelsAt(url).stream({ ...STREAM, tools })).toMatchObject({
      ok: true,
      calls: [{ name, input: {}, invalid: expect.stringContaining(why) }],
    })
  })
})

describe('a provider that fails', () => {
  it.each([429, 500, 503, 529])('with %i is retried after 1 and 2 s (C7)', async (status) => {
    const server = await openServer(inTurn({ error: { status } }, { error: { status } }, FINE))
    const models = modelsAt(server.url)
    expect(await models.generateObject(ASK)).toMatchObject({ ok: true })
    expect(models.waits).toEqual([1000, 2000])
  })

  it('is retried no more often than allowed', async () => {
    const server = await openServer(inTurn({ error: { status: 500, message: 'boom' } }))
    const models = modelsAt(server.url, { retries: 1 })
    const answer = await models.generateObject(ASK)
    expect(answer).toMatchObject({ ok: false, code: 'unavailable', message: expect.stringContaining('boom') })
    expect(server.requests).toHaveLength(2)
  })

  it('is not called before its retry-after', async () => {
    const server = await openServer(inTurn({ error: { status: 429, headers: { 'retry-after': '7' } } }, FINE))
    const models = modelsAt(server.url)
    expect(await models.generateObject(ASK)).toMatchObject({ ok: true })
    expect(models.waits).toEqual([7000])
  })

  it('and asks for a very long pause is not retried, and the time is reported', async () => {
    const server = await openServer(inTurn({ error: { status: 429, headers: { 'retry-after': '3600' } } }))
    const answer = await modelsAt(server.url).generateObject(ASK)
    expect(answer).toMatchObject({ ok: false, code: 'unavailable', retryAfterMs: 3_600_000 })
    expect(server.requests).toHaveLength(1)
  })

  it('permanently is not retried', async () => {
    const server = await openServer(inTurn({ error: { status: 400, message: 'bad request' } }))
    const models = modelsAt(server.url, { provider: 'anthropic' })
    expect(await models.generateObject(ASK)).toMatchObject({ ok: false, code: 'refused' })
    expect(server.requests).toHaveLength(1)
  })

  it.each([
    [401, 'no_key'],
    [403, 'no_key'],
    [404, 'unknown_model'],
    [413, 'too_long'],
  ])('with %i says %s', async (status, code) => {
    const server = await openServer(inTurn({ error: { status } }))
    expect(await modelsAt(server.url).generateObject(ASK)).toMatchObject({ ok: false, code })
  })

  it.each([
    ["This model's maximum context length is 8192 tokens", 'openai-compatible'],
    ['prompt is too long: 210000 tokens > 200000 maximum', 'anthropic'],
    ['The input token count (9) exceeds the maximum number of tokens allowed', 'google'],
  ] as const)('because of "%s" says too_long', async (message, provider) => {
    const server = await openServer(inTurn({ error: { status: 400, message } }))
    const models = modelsAt(server.url, { provider })
    expect(await models.stream(STREAM)).toMatchObject({ ok: false, code: 'too_long' })
  })

  it('because nothing listens there is reported with the reason', async () => {
    const answer = await modelsAt(await deadUrl(), { retries: 0 }).generateObject(ASK)
    expect(answer).toMatchObject({
      ok: false,
      code: 'unavailable',
      message: expect.stringContaining('ECONNREFUSED'),
    })
  })

  it('in the middle of its text is not retried here: the text was passed on', async () => {
    let calls = 0
    const url = await openRawServer((_, response) => {
      calls += 1
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const delta = { choices: [{ index: 0, delta: { content: 'Half an ans' }, finish_reason: null }] }
      response.write(`data: ${JSON.stringify(delta)}\n\n`)
      setTimeout(() => response.destroy(), 50)
    })
    const heard: string[] = []
    const answer = await modelsAt(url).stream({ ...STREAM, onText: (piece) => heard.push(piece) })
    expect(answer).toMatchObject({ ok: false, code: 'unavailable' })
    expect(heard).toEqual(['Half an ans'])
    expect(calls).toBe(1)
  })

  it('by ending its stream without an end marker is a failure', async () => {
    const url = await openRawServer((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const delta = { choices: [{ index: 0, delta: { content: 'Half an ans' }, finish_reason: null }] }
      response.end(`data: ${JSON.stringify(delta)}\n\n`)
    })
    expect(await modelsAt(url).stream(STREAM)).toMatchObject({ ok: false, code: 'unavailable' })
  })
})

describe('a refusal', () => {
  it('of a schema by a server without schemas is not a refusal to answer', async () => {
    const server = await openServer(({ schema }) =>
      schema === undefined ? FINE : { error: { status: 400, message: 'response_format is not supported' } },
    )
    expect(await modelsAt(server.url).generateObject(ASK)).toMatchObject({ ok: true, value: { fine: true } })
    expect(server.requests[1]!.request!.system).toContain('"fine"')
  })

  it('is its own kind of result, and is not retried', async () => {
    let calls = 0
    const url = await openRawServer((_, response) => {
      calls += 1
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(
        JSON.stringify({
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          model: 'm',
          content: [],
          stop_reason: 'refusal',
          stop_sequence: null,
          usage: { input_tokens: 1, output_tokens: 1 },
        }),
      )
    })
    const answer = await modelsAt(url, { provider: 'anthropic' }).generateObject(ASK)
    expect(answer).toMatchObject({ ok: false, code: 'refused' })
    expect(calls).toBe(1)
  })
})

describe('a call', () => {
  const realClock = { ...REAL_CLOCK, waits: [] }

  it('that takes too long times out', async () => {
    const server = await openServer(inTurn({ ...FINE, delayMs: 5000 }))
    const models = modelsAt(server.url, { timeoutMs: 100, retries: 0 }, { clock: realClock })
    expect(await models.generateObject(ASK)).toMatchObject({ ok: false, code: 'timeout' })
    await server.waitFor(({ state }) => state === 'aborted')
  })

  it('that streams has its timeout between two pieces, not for the whole', async () => {
    const server = await openServer(inTurn({ text: 'x'.repeat(50), chunkSize: 5, chunkMs: 60 }))
    const models = modelsAt(server.url, { timeoutMs: 300, retries: 0 }, { clock: realClock })
    expect(await models.stream(STREAM)).toMatchObject({ ok: true, text: 'x'.repeat(50) })
  })

  it('that is cancelled ends at once', async () => {
    const server = await openServer(inTurn({ ...FINE, delayMs: 5000 }))
    const gone = new AbortController()
    const answer = modelsAt(server.url).generateObject({ ...ASK, signal: gone.signal })
    await server.waitFor(({ request }) => request !== undefined)
    gone.abort()
    expect(await answer).toMatchObject({ ok: false, code: 'aborted' })
    await server.waitFor(({ state }) => state === 'aborted')
  })

  it('that is cancelled while it waits for a retry ends at once', async () => {
    const server = await openServer(inTurn({ error: { status: 500 } }))
    const gone = new AbortController()
    const clock = { ...createHasteClock(), after: () => () => {} }
    const answer = modelsAt(server.url, {}, { clock }).generateObject({ ...ASK, signal: gone.signal })
    await server.waitFor(({ state }) => state === 'answered')
    setTimeout(() => gone.abort(), 20)
    expect(await answer).toMatchObject({ ok: false, code: 'aborted' })
    expect(server.requests).toHaveLength(1)
  })

  it('of a model that orc.yaml does not name lists the known ones', async () => {
    const answer = await modelsAt(await deadUrl()).generateObject({ ...ASK, model: 'slow' })
    expect(answer).toMatchObject({ ok: false, code: 'unknown_model', hint: expect.stringContaining('fast') })
    expect(await modelsAt(await deadUrl()).generateObject({ ...ASK, model: 'toString' })).toMatchObject({
      code: 'unknown_model',
    })
  })
})

/** A model whose entry names no key variable. */
const NO_KEY = { keyEnv: undefined } as unknown as Partial<ModelSettings>

describe('the key', () => {
  it.each([{}, { MODEL_KEY: '' }, { MODEL_KEY: '  ' }])(
    'that is missing is asked for by its name: %o',
    async (env) => {
      const server = await openServer(() => FINE)
      const answer = await modelsAt(server.url, {}, { env: env as Record<string, string> }).generateObject(
        ASK,
      )
      expect(answer).toMatchObject({
        ok: false,
        code: 'no_key',
        message: expect.stringContaining('MODEL_KEY'),
      })
      expect(server.requests).toEqual([])
    },
  )

  it('is not replaced by another variable of the environment', async () => {
    const env = { ANTHROPIC_API_KEY: 'sk-ant-fake-other' }
    const models = modelsAt(await deadUrl(), { provider: 'anthropic' }, { env })
    expect(await models.generateObject(ASK)).toMatchObject({ code: 'no_key' })
  })

  it('appears in no answer and no log line', async () => {
    const server = await openServer(inTurn({ error: { status: 401, message: `Incorrect API key: ${KEY}` } }))
    const models = modelsAt(server.url)
    const answer = await models.generateObject(ASK)
    expect(answer).toMatchObject({ ok: false, code: 'no_key', message: expect.stringContaining('***') })
    expect(JSON.stringify([answer, models.logged])).not.toContain(KEY)
    expect(models.logged).toHaveLength(1)
  })

  it('is not sent if none is named', async () => {
    const server = await openServer(() => FINE)
    const models = modelsAt(server.url, NO_KEY)
    expect(await models.generateObject(ASK)).toMatchObject({ ok: true })
    expect(server.requests[0]!.headers.authorization).toBeUndefined()
  })
})
