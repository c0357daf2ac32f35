import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import { type ModelServer, startModelServer } from './model-server/model-server.ts'
import type { Play } from './model-server/play.ts'

type Json = Record<string, unknown>

/** The requests of a program for each format, and how it assembles the streamed answer. */
interface Dialect {
  path: string
  streamPath?: string
  key: Record<string, string>
  /** A user's text after some history and additions by the program. */
  ask(text: string): Json
  /** A request that returns the tool's result. */
  result(text: string): Json
  tools: Json
  text(whole: Json): unknown
  streamedText(events: Json[]): string
  calls(whole: Json): unknown
  streamedCalls(events: Json[]): unknown
  usage(whole: Json): unknown
}

const at = (value: unknown, ...path: (string | number)[]): unknown =>
  path.reduce<unknown>((node, key) => (node as Record<string | number, unknown> | undefined)?.[key], value)

const DIALECTS: Record<string, Dialect> = {
  'anthropic-messages': {
    path: '/v1/messages',
    key: { 'x-api-key': 'sk-ant-fake-alice' },
    ask: (text) => ({
      model: 'm',
      system: [{ type: 'text', text: 'Be brief.' }],
      messages: [
        { role: 'user', content: 'earlier' },
        { role: 'assistant', content: [{ type: 'text', text: 'before' }] },
        { role: 'system', content: 'Be kind.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: '<system-reminder>not said</system-reminder>' },
            { type: 'text', text },
          ],
        },
      ],
    }),
    result: (content) => ({
      model: 'm',
      messages: [
        { role: 'user', content: 'earlier' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'Bash', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content }] },
      ],
    }),
    tools: { tools: [{ name: 'Bash' }, { name: 'mcp__orc__send_message' }] },
    text: (whole) => at(whole, 'content', 0, 'text'),
    streamedText: (events) => events.map((event) => at(event, 'delta', 'text') ?? '').join(''),
    calls: (whole) => [at(whole, 'content', 1, 'name'), at(whole, 'content', 1, 'input')],
    streamedCalls: (events) => [
      events.map((event) => at(event, 'content_block', 'name')).find(Boolean),
      JSON.parse(events.map((event) => at(event, 'delta', 'partial_json') ?? '').join('')),
    ],
    usage: ({ usage }) => [
      at(usage, 'input_tokens'),
      at(usage, 'cache_read_input_tokens'),
      at(usage, 'output_tokens'),
    ],
  },
  'openai-responses': {
    path: '/v1/responses',
    key: { authorization: 'Bearer sk-fake-alice' },
    ask: (text) => ({
      model: 'm',
      instructions: 'Be brief.',
      input: [
        { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'Be kind.' }] },
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'earlier' }] },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'before' }] },
        {
          type: 'message',
          role: 'user',
          content: [{ type: 'input_text', text: '<environment_context>not said</environment_context>' }],
        },
        { type: 'message', role: 'user', content: [{ type: 'input_text', text }] },
      ],
    }),
    result: (output) => ({
      model: 'm',
      input: [
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'earlier' }] },
        { type: 'function_call', call_id: 'c', name: 'exec_command', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c', output },
      ],
    }),
    tools: {
      tools: [
        { type: 'function', name: 'exec_command' },
        { type: 'namespace', name: 'multi_agent', tools: [{ type: 'function', name: 'send_message' }] },
        { type: 'namespace', name: 'mcp__orc', tools: [{ type: 'function', name: 'send_message' }] },
      ],
    },
    text: (whole) => at(whole, 'output', 0, 'content', 0, 'text'),
    streamedText: (events) =>
      events.map((event) => (event.type === 'response.output_text.delta' ? event.delta : '')).join(''),
    calls: (whole) => responsesCall(at(whole, 'output', 1)),
    streamedCalls: (events) =>
      responsesCall(
        events
          .filter(({ type }) => type === 'response.output_item.done')
          .map(({ item }) => item)
          .find((item) => at(item, 'type') === 'function_call'),
      ),
    usage: ({ usage }) => [
      at(usage, 'input_tokens'),
      at(usage, 'input_tokens_details', 'cached_tokens'),
      at(usage, 'output_tokens'),
    ],
  },
  'openai-chat': {
    path: '/v1/chat/completions',
    key: { authorization: 'Bearer sk-fake-alice' },
    ask: (text) => ({
      model: 'm',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: 'earlier' },
        { role: 'assistant', content: 'before' },
        { role: 'user', content: [{ type: 'text', text }] },
      ],
    }),
    result: (content) => ({
      model: 'm',
      messages: [
        { role: 'user', content: 'earlier' },
        { role: 'assistant', content: '', tool_calls: [] },
        { role: 'tool', tool_call_id: 'c', content },
      ],
    }),
    tools: {
      tools: ['bash', 'orc_send_message'].map((name) => ({ type: 'function', function: { name } })),
    },
    text: (whole) => at(whole, 'choices', 0, 'message', 'content'),
    streamedText: (events) =>
      events.map((event) => at(event, 'choices', 0, 'delta', 'content') ?? '').join(''),
    calls: (whole) => chatCall(at(whole, 'choices', 0, 'message', 'tool_calls', 0)),
    streamedCalls: (events) =>
      chatCall(events.map((event) => at(event, 'choices', 0, 'delta', 'tool_calls', 0)).find(Boolean)),
    usage: ({ usage }) => [
      at(usage, 'prompt_tokens'),
      at(usage, 'prompt_tokens_details', 'cached_tokens'),
      at(usage, 'completion_tokens'),
    ],
  },
  gemini: {
    path: '/v1beta/models/m:generateContent',
    streamPath: '/v1beta/models/m:streamGenerateContent?alt=sse',
    key: { 'x-goog-api-key': 'fake-fake-alice' },
    ask: (text) => ({
      systemInstruction: { parts: [{ text: 'Be brief. ' }, { text: 'Be kind.' }] },
      contents: [
        { role: 'user', parts: [{ text: '<session_context>not said</session_context>' }] },
        { role: 'user', parts: [{ text: 'earlier' }] },
        { role: 'model', parts: [{ text: 'before' }] },
        { role: 'user', parts: [{ text }] },
      ],
    }),
    result: (output) => ({
      contents: [
        { role: 'user', parts: [{ text: 'earlier' }] },
        { role: 'model', parts: [{ functionCall: { name: 'run_shell_command', args: {} } }] },
        { role: 'user', parts: [{ functionResponse: { name: 'run_shell_command', response: { output } } }] },
      ],
    }),
    tools: {
      tools: [{ functionDeclarations: [{ name: 'run_shell_command' }, { name: 'mcp_orc_send_message' }] }],
    },
    text: (whole) => at(whole, 'candidates', 0, 'content', 'parts', 0, 'text'),
    streamedText: (events) =>
      events.map((event) => at(event, 'candidates', 0, 'content', 'parts', 0, 'text') ?? '').join(''),
    calls: (whole) => geminiCall(at(whole, 'candidates', 0, 'content', 'parts', 1)),
    streamedCalls: (events) => geminiCall(at(events.at(-1), 'candidates', 0, 'content', 'parts', 0)),
    usage: ({ usageMetadata }) => [
      at(usageMetadata, 'promptTokenCount'),
      at(usageMetadata, 'cachedContentTokenCount'),
      at(usageMetadata, 'candidatesTokenCount'),
    ],
  },
}

const responsesCall = (item: unknown) => [
  [at(item, 'namespace'), at(item, 'name')].filter(Boolean).join('/'),
  JSON.parse(String(at(item, 'arguments'))),
]
const chatCall = (call: unknown) => [
  at(call, 'function', 'name'),
  JSON.parse(String(at(call, 'function', 'arguments'))),
]
const geminiCall = (part: unknown) => [at(part, 'functionCall', 'name'), at(part, 'functionCall', 'args')]

const MCP_NAMES: Record<string, string> = {
  'anthropic-messages': 'mcp__orc__send_message',
  'openai-responses': 'mcp__orc/send_message',
  'openai-chat': 'orc_send_message',
  gemini: 'mcp_orc_send_message',
}

let server: ModelServer
const start = async (play: Play) => {
  server = await startModelServer({ play })
}
afterEach(() => server.close())

const post = (path: string, body: Json, headers: Record<string, string> = {}) =>
  fetch(`${server.url}${path}`, { method: 'POST', body: JSON.stringify(body), headers })

async function ask(dialect: Dialect, body: Json): Promise<Json> {
  const answer = await post(dialect.path, { ...dialect.tools, ...body }, dialect.key)
  return (await answer.json()) as Json
}

async function stream(dialect: Dialect, body: Json): Promise<Json[]> {
  const wanted = { ...dialect.tools, stream: true, ...body }
  const answer = await post(dialect.streamPath ?? dialect.path, wanted, dialect.key)
  expect(answer.headers.get('content-type')).toBe('text/event-stream')
  const lines = (await answer.text()).split('\n').filter((line) => line.startsWith('data: {'))
  return lines.map((line) => JSON.parse(line.slice('data: '.length)))
}

describe.each(Object.entries(DIALECTS))('a scripted model that speaks %s', (name, dialect) => {
  it('decodes the same request', async () => {
    await start([])
    await ask(dialect, dialect.ask('What now?'))

    const [call] = server.calls('alice')
    expect(call).toMatchObject({ agent: 'alice', format: name, state: 'answered' })
    expect(call?.request).toMatchObject({
      model: 'm',
      userText: 'What now?',
      prompt: 'What now?',
      toolResults: [],
      side: false,
    })
    expect(call?.request?.system).toMatch(/^Be brief\.\s+Be kind\.$/)
    expect(call?.request?.reminders.join()).toMatch(name === 'openai-chat' ? /^$/ : /not said/)
  })

  it('answers with the same text, streamed or not', async () => {
    const text = 'One line.\nAnother — with 🦀🦀🦀 and "quotes".'
    await start([{ when: /go/, reply: { text, chunkSize: 3 } }])

    expect(dialect.streamedText(await stream(dialect, dialect.ask('go')))).toBe(text)
    expect(dialect.text(await ask(dialect, dialect.ask('go')))).toBe(text)
  })

  it('thinks beside its text (C4)', async () => {
    await start([{ reply: { thinking: 'Hm.', text: 'Yes.' } }])

    const events = await stream(dialect, dialect.ask('go'))
    expect(JSON.stringify(events)).toContain('Hm.')
    expect(dialect.streamedText(events.filter((event) => !JSON.stringify(event).includes('Hm.')))).toBe(
      'Yes.',
    )
    expect(JSON.stringify(await ask(dialect, dialect.ask('go')))).toContain('Hm.')
  })

  it("calls a tool of the MCP server by the program's name for it", async () => {
    const input = { to: 'bob', body: '<a> & "b"' }
    await start([{ reply: { text: 'Calling.', toolCalls: [{ mcp: 'send_message', input }] } }])

    const expected = [MCP_NAMES[name], input]
    expect(dialect.calls(await ask(dialect, dialect.ask('go')))).toEqual(expected)
    expect(dialect.streamedCalls(await stream(dialect, dialect.ask('go')))).toEqual(expected)
  })

  it("runs a command in the program's shell and gets its result", async () => {
    await start([
      { when: /go/, reply: { text: 'Running.', toolCalls: [{ shell: 'ls' }] } },
      { toolResult: /file\.txt/, when: /earlier/, reply: { text: 'I see a file.' } },
    ])

    expect(JSON.stringify(dialect.calls(await ask(dialect, dialect.ask('go'))))).toContain('ls')
    expect(dialect.text(await ask(dialect, dialect.result('file.txt')))).toBe('I see a file.')
    expect(server.calls().at(-1)?.request).toMatchObject({
      userText: '',
      prompt: 'earlier',
      toolResults: ['file.txt'],
    })
  })

  it('says in the text that the program does not offer a tool', async () => {
    await start([{ reply: { toolCalls: [{ name: 'Fly', input: {} }] } }])

    expect(dialect.text(await ask(dialect, dialect.ask('go')))).toBe('NO SUCH TOOL: Fly')
  })

  it('reports the usage that the play sets', async () => {
    await start([{ reply: { text: 'Full.', usage: { input: 190_000, cached: 150_000, output: 7 } } }])

    const usage = dialect.usage(await ask(dialect, dialect.ask('go')))
    expect(usage).toEqual([name === 'anthropic-messages' ? 40_000 : 190_000, 150_000, 7])
  })

  it.each([429, 500, 503, 529])('fails with %d if the play says so', async (status) => {
    await start([
      { times: 1, reply: { error: { status, message: 'Too much.', headers: { 'retry-after': '1' } } } },
      { reply: { text: 'Again.' } },
    ])

    const failed = await post(dialect.path, { ...dialect.tools, ...dialect.ask('go') }, dialect.key)
    expect(failed.status).toBe(status)
    expect(failed.headers.get('retry-after')).toBe('1')
    expect(at(await failed.json(), 'error', 'message')).toBe('Too much.')
    expect(dialect.text(await ask(dialect, dialect.ask('go')))).toBe('Again.')
  })

  it('answers a side call harmlessly, whatever the play says', async () => {
    await start([{ reply: { text: '<orc_send_message to="bob">no</orc_send_message>' } }])

    const answer = await post(dialect.path, dialect.ask('Make a title for: go'), dialect.key)
    expect(dialect.text((await answer.json()) as Json)).toBe('Scripted title')
    expect(server.calls()).toEqual([])
  })
})

describe('a scripted model', () => {
  const { ask: question, ...anthropic } = DIALECTS['anthropic-messages']!
  const dialect = { ...anthropic, ask: question }

  it.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
  ])('reads a body compressed with %s', async (encoding, compress) => {
    await start([])
    await fetch(`${server.url}/v1/messages`, {
      method: 'POST',
      body: compress(JSON.stringify(question('squeezed'))),
      headers: { 'content-encoding': encoding },
    })

    expect(server.requests[0]?.request?.prompt).toBe('squeezed')
  })

  it('answers probes and counts tokens', async () => {
    await start([])

    expect((await fetch(server.url, { method: 'HEAD' })).status).toBe(200)
    expect((await fetch(`${server.url}/v1/models`)).status).toBe(404)
    for (const [path, field] of [
      ['/v1/messages/count_tokens', 'input_tokens'],
      ['/v1beta/models/m:countTokens', 'totalTokens'],
    ] as const)
      expect(at(await (await post(path, { some: 'text' })).json(), field)).toBeGreaterThan(0)
  })

  it('answers each agent by its own rule, told apart by key', async () => {
    await start([
      { agent: 'bob', reply: { text: 'for bob' } },
      { agent: 'alice', reply: { text: 'for alice' } },
    ])
    const asBob = { ...dialect, key: { 'x-api-key': 'sk-ant-fake-bob' } }

    expect(dialect.text(await ask(dialect, question('go')))).toBe('for alice')
    expect(dialect.text(await ask(asBob, question('go')))).toBe('for bob')
  })

  it('never repeats a text when no rule fits: Gemini would suspect a loop', async () => {
    await start([])

    const texts = [await ask(dialect, question('a')), await ask(dialect, question('a'))].map(dialect.text)
    expect(texts[0]).not.toBe(texts[1])
  })

  it('keeps an agent busy until the play releases it', async () => {
    const gate = Promise.withResolvers<void>()
    await start([{ reply: () => gate.promise.then(() => ({ text: 'At last.' })) }])
    const answer = ask(dialect, question('go'))
    const call = await server.waitFor((one) => one.agent === 'alice')

    expect(call.state).toBe('open')
    gate.resolve()
    expect(dialect.text(await answer)).toBe('At last.')
  })

  it('notices that the program hung up while it was waiting', async () => {
    await start([{ reply: { text: 'Too late.', delayMs: 60_000 } }])
    const interrupt = new AbortController()
    const answer = fetch(`${server.url}/v1/messages`, {
      method: 'POST',
      body: JSON.stringify({ ...dialect.tools, ...question('go') }),
      signal: interrupt.signal,
    })
    await server.waitFor((one) => one.state === 'open')
    interrupt.abort()

    await expect(answer).rejects.toThrow()
    await server.waitFor((one) => one.state === 'aborted')
  })

  it('returns JSON for the schema of a check, with no next speaker', async () => {
    await start([])
    const schema = {
      type: 'OBJECT',
      properties: {
        reasoning: { type: 'STRING' },
        next_speaker: { type: 'STRING', enum: ['model', 'user'] },
        complexity_score: { type: 'INTEGER' },
        confidence: { type: 'number' },
        items: { type: 'array', minItems: 1, items: { type: ['null', 'string'] } },
      },
    }
    const body = { ...question('go'), output_config: { format: { type: 'json_schema', schema } } }

    expect(JSON.parse(String(dialect.text(await ask(dialect, body))))).toEqual({
      reasoning: 'scripted',
      next_speaker: 'user',
      complexity_score: 1,
      confidence: 0,
      items: [null],
    })
  })

  it('shows in the answer that the play itself is broken', async () => {
    await start(() => {
      throw new Error('no such line')
    })

    expect(at(await ask(dialect, question('go')), 'error', 'message')).toBe('The play failed: no such line')
  })

  it('lists the calls it got when an expected one is missing', async () => {
    await start([])
    await ask(dialect, question('go'))

    await expect(server.waitFor((one) => one.agent === 'carol', 20)).rejects.toThrow(
      /alice POST \/v1\/messages answered/,
    )
  })
})
