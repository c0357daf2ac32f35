/**
 * A small agent that speaks real ACP (the library's agent side) and follows instructions without a model: a program
 * for tests. Flags set its behaviour from the start; it obeys lines in a prompt that begin with a word of DOES, in
 * order. It stores conversations in $FAKE_ACP_STORE and appends its requests to $FAKE_ACP_LOG.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { type AgentContext, agent, methods, ndJsonStream, RequestError } from '@agentclientprotocol/sdk'

type Said = { by: 'user' | 'agent'; text: string }
type Update = { sessionUpdate: string } & Record<string, unknown>

const flags = new Set(process.argv.slice(2))
const store = process.env.FAKE_ACP_STORE
const conversations: Record<string, Said[]> =
  store !== undefined && existsSync(store) ? JSON.parse(readFileSync(store, 'utf8')) : {}
let current: { cancelled: PromiseWithResolvers<void> } | undefined

function record(what: string, value: unknown) {
  const file = process.env.FAKE_ACP_LOG
  if (file !== undefined) appendFileSync(file, `${JSON.stringify({ what, value })}\n`)
}

function remember(sessionId: string, said: Said) {
  conversations[sessionId]?.push(said)
  if (store !== undefined) writeFileSync(store, JSON.stringify(conversations))
}

async function update(client: AgentContext, sessionId: string, change: Update) {
  // Not the library's types on purpose: some tests send invalid messages.
  await client.notify<unknown>('session/update', { sessionId, update: change })
}

/** Bypasses the library's writer, which loses output while our own line still drains. */
async function print(line: string): Promise<undefined> {
  await new Promise((resolve) => process.stdout.write(`${line}\n`, resolve))
  if (process.stdout.writableNeedDrain) await once(process.stdout, 'drain')
}

const chunk = (sessionUpdate: string, text: string, messageId?: string): Update => ({
  sessionUpdate,
  content: { type: 'text', text },
  ...(messageId === undefined ? {} : { messageId }),
})

interface Turn {
  client: AgentContext
  sessionId: string
  say(text: string, messageId?: string): Promise<void>
}

/** Each returns the stop reason of the turn, or nothing to continue. */
const DOES: Record<string, (turn: Turn, argument: string) => Promise<string | undefined>> = {
  SAY: async (turn, text) => void (await turn.say(text.replaceAll('\\n', '\n'))),
  /** `SAYAS id text`: says the text in a message with that id. */
  SAYAS: async (turn, text) => {
    const [id, ...words] = text.split(' ')
    await turn.say(words.join(' '), id)
    return undefined
  },
  /** The same words as for agents of the other runtimes. */
  say: async (turn, text) => void (await turn.say(`\n${text}\n`)),
  work: async (_, ms) => void (await sleep(Number(ms))),
  THINK: async (turn, text) =>
    void (await update(turn.client, turn.sessionId, chunk('agent_thought_chunk', text))),
  TOOL: async (turn, title) =>
    void (await update(turn.client, turn.sessionId, {
      sessionUpdate: 'tool_call',
      toolCallId: 'call_1',
      title,
      status: 'pending',
      content: [{ type: 'content', content: { type: 'text', text: title } }],
    })),
  UPDATE: async (turn, json) => void (await update(turn.client, turn.sessionId, JSON.parse(json))),
  OTHERS: async (turn, text) =>
    void (await update(turn.client, 'another-session', chunk('agent_message_chunk', text))),
  ASK: async (turn, command) => {
    const answer = await turn.client.request(methods.client.session.requestPermission, {
      sessionId: turn.sessionId,
      toolCall: { toolCallId: 'call_2', title: `Run ${command}`, kind: 'execute', rawInput: { command } },
      options: [
        { optionId: 'always', name: 'Always', kind: 'allow_always' },
        { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
        { optionId: 'no', name: 'No', kind: 'reject_once' },
      ].filter((option) => !flags.has('--only-always') || option.optionId === 'always') as never,
    })
    record('verdict', answer)
    const { outcome } = answer
    if (outcome.outcome === 'cancelled') return 'cancelled'
    await turn.say(`verdict ${outcome.optionId}`)
    return undefined
  },
  /** Calls a method that our client doesn't offer. */
  WANT: async (turn, method) => {
    const answer = await turn.client
      .request(method, { path: '/etc/passwd' })
      .catch((error: Error) => error.message)
    await turn.say(`refused ${answer}`)
    return undefined
  },
  WAIT: async () => {
    await current?.cancelled.promise
    return 'cancelled'
  },
  SLEEP: async (_, ms) => void (await sleep(Number(ms))),
  DEAF: async () => await new Promise<never>(() => {}),
  DIE: async (_, code) => {
    process.stderr.write(`dying as told, with \u001B[31m${code}\u001B[0m\n`)
    await sleep(20)
    process.exit(Number(code))
  },
  FAIL: async (_, code) => {
    throw new RequestError(Number(code), 'failed as told', { details: 'the model is away' })
  },
  STOP: async (_, reason) => reason,
  GARBAGE: async (_, line) => await print(line),
  HUGE: async (_, bytes) =>
    await print(`{"jsonrpc":"2.0","method":"session/update","params":"${'x'.repeat(Number(bytes))}"}`),
  HUGEANSWER: async (_, bytes) =>
    await print(`{"jsonrpc":"2.0","id":1,"result":"${'x'.repeat(Number(bytes))}"}`),
  FLOOD: async (turn, count) => {
    for (let i = 0; i < Number(count); i++) {
      const line = `line ${i} ${'.'.repeat(1000)}\n`
      await update(turn.client, turn.sessionId, chunk('agent_message_chunk', line))
    }
    record('flooded', count)
    return undefined
  },
  /** Starts a process with the mark and its own process group, and one that is only a descendant. */
  CHILDREN: async () => {
    const marked = spawn('sleep', ['300'], { detached: true, stdio: 'ignore' })
    const unmarked = spawn('sleep', ['300'], { detached: true, stdio: 'ignore', env: {} })
    record('children', [marked.pid, unmarked.pid])
    return undefined
  },
}

async function obey(turn: Turn, prompt: string): Promise<string> {
  for (const line of prompt.split('\n')) {
    const [, word = '', argument = ''] = /^([A-Za-z]+) ?(.*)$/.exec(line) ?? []
    const stop = Object.hasOwn(DOES, word) ? await DOES[word]?.(turn, argument) : undefined
    if (stop !== undefined) return stop
  }
  return 'end_turn'
}

async function replay(client: AgentContext, sessionId: string) {
  for (const { by, text } of conversations[sessionId] ?? []) {
    // In two halves: a reader must not rely on a message arriving in one piece.
    const middle = Math.floor(text.length / 2)
    for (const half of [text.slice(0, middle), text.slice(middle)]) {
      await update(client, sessionId, chunk(`${by}_message_chunk`, half))
      if (flags.has('--late-replay')) await sleep(20)
    }
  }
}

function mustKnow(sessionId: string) {
  if (conversations[sessionId] === undefined) throw RequestError.sessionNotFound(sessionId)
}

if (flags.has('--exit-at-once')) {
  process.stderr.write('no configuration found\n')
  process.exit(3)
}
record('start', { env: { ...process.env }, argv: process.argv.slice(2), pid: process.pid })
if (flags.has('--noise'))
  process.stdout.write('Welcome!\n{"half": \n[1,2]\n"text"\n{"jsonrpc":"2.0","id":77,"result":1}\n')
if (flags.has('--stubborn')) {
  process.on('SIGTERM', () => {})
  setInterval(() => {}, 1000)
}

const modes = {
  currentModeId: 'ask',
  availableModes: [
    { id: 'ask', name: 'Ask' },
    { id: 'plan', name: 'Plan' },
  ],
}

agent({ name: 'fake' })
  .onRequest(methods.agent.initialize, async ({ params }) => {
    record('initialize', params)
    if (flags.has('--hang')) await new Promise(() => {})
    return {
      protocolVersion: flags.has('--version-9') ? 9 : 1,
      agentInfo: { name: 'fake', version: '1.0' },
      agentCapabilities: {
        loadSession: !flags.has('--no-load'),
        mcpCapabilities: { http: !flags.has('--no-http') },
        sessionCapabilities: {
          ...(flags.has('--resume') ? { resume: {} } : {}),
          ...(flags.has('--system-prompt') ? { systemPrompt: {} } : {}),
        },
      },
      _meta: { steering: { supported: flags.has('--steers') } },
    }
  })
  .onRequest(
    'session/new',
    (params) => params as Record<string, unknown>,
    async ({ params }) => {
      record('new', params)
      if (flags.has('--login')) throw RequestError.authRequired()
      const sessionId = `conversation-${Object.keys(conversations).length + 1}`
      conversations[sessionId] = []
      return { sessionId, modes }
    },
  )
  .onRequest(methods.agent.session.load, async ({ params, client }) => {
    record('load', params)
    mustKnow(params.sessionId)
    const replaying = replay(client, params.sessionId)
    if (!flags.has('--late-replay')) await replaying
    return { modes }
  })
  .onRequest(methods.agent.session.resume, ({ params }) => {
    record('resume', params)
    mustKnow(params.sessionId)
    return { modes }
  })
  .onRequest(methods.agent.session.setMode, ({ params }) => {
    record('mode', params.modeId)
    return {}
  })
  .onRequest(
    '_session/steering',
    (params) => params as Record<string, unknown>,
    ({ params }) => {
      record('steering', params)
      return { outcome: 'injected' }
    },
  )
  .onNotification(methods.agent.session.cancel, () => {
    record('cancel', {})
    current?.cancelled.resolve()
  })
  .onRequest(methods.agent.session.prompt, async ({ params, client }) => {
    const { sessionId, prompt } = params
    const text = prompt.map((block) => (block.type === 'text' ? block.text : '')).join('')
    record('prompt', text)
    remember(sessionId, { by: 'user', text })
    current = { cancelled: Promise.withResolvers() }
    const turn: Turn = {
      client,
      sessionId,
      async say(words, messageId) {
        remember(sessionId, { by: 'agent', text: words })
        await update(client, sessionId, chunk('agent_message_chunk', words, messageId))
      },
    }
    const stopReason = await obey(turn, text)
    return {
      stopReason: stopReason as 'end_turn',
      usage: { inputTokens: 100, outputTokens: 20, cachedReadTokens: 5, totalTokens: 120 },
    }
  })
  .connect(
    ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>),
  )
