import { type AppError, asAppError } from '../../../base/errors.ts'
import { backoff, wait } from '../../../client/backoff.ts'
import {
  createTransport,
  isTemporary,
  newIdempotencyKey,
  readLines,
  refusal,
  type Transport,
} from '../../../client/transport.ts'
import { errorReceipt } from '../../../protocol/receipt.ts'
import { socketFetch } from '../../connection/client.ts'
import { openConnection, type TeamLocation } from '../../connection/connection.ts'
import { printRaw, tryWrite } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'service mcp',
  summary: 'serve every command as an MCP tool on standard input and output',
  details:
    'For programs that start MCP servers as processes; programs that use HTTP connect to /mcp of the service instead.\n' +
    'Acts as the agent whose token is in ORC_TOKEN, otherwise as the operator. While the service is unreachable, calls\n' +
    'fail with a message; they work again as soon as it answers. docs/mcp.md has the settings for each program.',
  examples: [
    'ORC_TOKEN=$(orc token create Worker) orc service mcp',
    'claude mcp add orc -e ORC_TOKEN=TOKEN -- orc service mcp',
  ],
  async run({ location, program }) {
    process.stdin.setEncoding('utf8')
    await bridgeMcp({
      lines: readLines(process.stdin as AsyncIterable<string>),
      write: (message) => tryWrite(() => printRaw(`${message}\n`)),
      post: postTo(location),
      version: await program.version(),
    })
    return 0
  },
}

/** Looks up the service for each request, because a restart may change its address. */
function postTo(location: TeamLocation) {
  let known: { address: string; token: string; transport: Transport } | undefined
  return async (body: string, headers: Record<string, string>) => {
    const { address, token } = await openConnection(location)
    if (known?.address !== address || known.token !== token) {
      known = { address, token, transport: createTransport(address, token, socketFetch(address)) }
    }
    return await known.transport.send({ method: 'POST', path: '/mcp', headers, body })
  }
}

/** The part of a JSON-RPC message that the bridge reads. */
interface JsonRpcMessage {
  jsonrpc?: unknown
  id?: string | number | null
  method?: string
  params?: { name?: unknown; protocolVersion?: unknown; _meta?: Record<string, unknown> }
}

interface BridgeOptions {
  /** Messages of the client, one per line. */
  lines: AsyncIterable<string>
  /** Sends one message to the client. */
  write(message: string): void
  /** Throws SERVICE_UNREACHABLE without an answer. The service's address may change between calls. */
  post(body: string, headers: Record<string, string>): Promise<{ status: number; text: string }>
  /** For the answer to `initialize` while the service is unreachable. */
  version: string
}

/** Retry this long before reporting the service as unreachable: a restart takes less. */
const PATIENCE_MS = 2000
/** Poll interval while the service is unreachable. */
const POLL_MS = 1000

/**
 * Forwards MCP messages between standard input and output and the service. All answers come from the service; only while
 * it is unreachable does the bridge answer itself, so that the client stays connected and finds the tools afterwards.
 */
async function bridgeMcp({ lines, write, post, version }: BridgeOptions): Promise<void> {
  const pending = new Set<Promise<void>>()
  const ended = new AbortController()
  let watching = false
  /** While true, further messages fail at once instead of after PATIENCE_MS. */
  let isAway = false

  async function forward(line: string) {
    const message = parse(line)
    if (message === undefined) {
      send({ id: null, error: { code: PARSE_ERROR, message: 'The line is not JSON' } })
      return
    }
    try {
      for (const answer of await ask(line, message)) write(answer)
    } catch (thrown) {
      const error = asAppError(thrown)
      for (const one of Array.isArray(message) ? message : [message]) answerFor(one, error)
    }
  }

  async function ask(body: string, message: JsonRpcMessage | JsonRpcMessage[]): Promise<string[]> {
    // Retries carry the same key, so the command runs once (C25).
    const headers = { ...protocolHeaders(message), 'idempotency-key': newIdempotencyKey() }
    const deadline = Date.now() + (isAway ? 0 : PATIENCE_MS)
    for (let failures = 0; ; failures++) {
      try {
        const { status, text } = await post(body, headers)
        // Errors before MCP, such as a wrong token, arrive as error receipts of the API.
        if (status >= 400 && isReceipt(parse(text))) throw refusal(status, text)
        isAway = false
        return messagesIn(text)
      } catch (error) {
        if (!isTemporary(error)) throw error
        isAway = Date.now() >= deadline
        if (isAway) throw error
        await wait(backoff(failures), ended.signal)
      }
    }
  }

  function answerFor({ id, method, params }: JsonRpcMessage, error: AppError) {
    if (id === undefined || method === undefined) return
    const isUnreachable = isTemporary(error)
    if (method === 'tools/call') send({ id, result: failedCall(error) })
    else if (method === 'ping' && isUnreachable) send({ id, result: {} })
    else if (method === 'initialize' && isUnreachable) {
      send({ id, result: greeting(params?.protocolVersion, error, version) })
      void watch()
    } else {
      send({ id, error: { code: SERVER_ERROR, message: textOf(error), data: errorReceipt(error) } })
      if (method === 'tools/list' && isUnreachable) void watch()
    }
  }

  /** Tells the client to list the tools again once the service answers. */
  async function watch() {
    if (watching) return
    watching = true
    while (watching && !ended.signal.aborted) {
      await wait(POLL_MS, ended.signal)
      try {
        await post(PING, protocolHeaders({}))
        watching = false
        send({ method: 'notifications/tools/list_changed' })
      } catch {
        // Still unreachable.
      }
    }
  }

  const send = (message: object) => write(JSON.stringify({ jsonrpc: '2.0', ...message }))

  for await (const line of lines) {
    if (line.trim() === '') continue
    const forwarded: Promise<void> = forward(line).finally(() => pending.delete(forwarded))
    pending.add(forwarded)
  }
  await Promise.all(pending)
  ended.abort()
}

const PARSE_ERROR = -32_700
const SERVER_ERROR = -32_000
const PING = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'ping' })
/** The last revision that begins with `initialize`. */
const GREETED_VERSION = '2025-11-25'
const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion'

/** Newer revisions of MCP over HTTP repeat parts of the message in headers, for proxies. */
function protocolHeaders(message: JsonRpcMessage | JsonRpcMessage[]): Record<string, string> {
  const plain = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  if (Array.isArray(message)) return plain
  const version = message.params?._meta?.[VERSION_KEY]
  if (typeof version !== 'string' || message.method === undefined) return plain
  const name = message.params?.name
  const all = {
    'mcp-protocol-version': version,
    'mcp-method': message.method,
    ...(typeof name === 'string' ? { 'mcp-name': name } : {}),
  }
  // Values that aren't valid in a header are left out; the service then reports them as missing.
  return {
    ...plain,
    ...Object.fromEntries(Object.entries(all).filter(([, value]) => /^[!-~]+$/.test(value))),
  }
}

/** A response is JSON, a finished event stream, or empty. */
function messagesIn(text: string): string[] {
  if (text === '') return []
  if (parse(text) !== undefined) return [text]
  return text.split('\n').flatMap((line) => (line.startsWith('data: ') ? [line.slice('data: '.length)] : []))
}

function isReceipt(answer: object | undefined): boolean {
  return answer !== undefined && 'status' in answer && answer.status === 'error'
}

/** A failed call is a tool result, so that the model can read it. */
function failedCall(error: AppError) {
  return {
    content: [{ type: 'text', text: textOf(error) }],
    structuredContent: errorReceipt(error),
    isError: true,
  }
}

function greeting(asked: unknown, error: AppError, version: string) {
  const isKnown = typeof asked === 'string' && /^\d{4}-\d\d-\d\d$/.test(asked) && asked <= GREETED_VERSION
  return {
    protocolVersion: isKnown ? asked : GREETED_VERSION,
    capabilities: { tools: { listChanged: true } },
    serverInfo: { name: 'orchub', title: 'Orchub', version },
    instructions: `Orchub is unreachable: ${textOf(error)} Its tools return as soon as it answers.`,
  }
}

function textOf({ code, message, hint }: AppError): string {
  return `${message} (${code}).${hint === undefined ? '' : ` ${hint}`}`
}

function parse(text: string): JsonRpcMessage | JsonRpcMessage[] | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null
      ? (value as JsonRpcMessage | JsonRpcMessage[])
      : undefined
  } catch {
    return undefined
  }
}
