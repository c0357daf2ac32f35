import { AppError, asAppError, type ErrorCode } from '../../../base/errors.ts'
import { backoff, wait } from '../../../client/backoff.ts'
import { newIdempotencyKey } from '../../../client/idempotency-key.ts'
import { errorReceipt } from '../../../protocol/receipt.ts'

/** The part of a JSON-RPC message that the bridge looks at. */
interface JsonRpcMessage {
  jsonrpc?: unknown
  id?: string | number | null
  method?: string
  params?: { name?: unknown; protocolVersion?: unknown; _meta?: Record<string, unknown> }
}

export interface BridgeOptions {
  /** Messages of the client, one a line. */
  lines: AsyncIterable<string>
  /** One message for the client. */
  write(message: string): void
  /** Throws a SERVICE_UNREACHABLE when nobody answers. Where the service is may change from one time to the next. */
  post(body: string, headers: Record<string, string>): Promise<{ status: number; text: string }>
  /** For the one answer that cannot wait for the service. */
  version: string
}

/** How long a message is sent again before the client is told that the service is away: a restart takes no longer. */
const PATIENCE_MS = 2000
/** How often a service that was away is looked for. */
const LOOK_MS = 1000

/**
 * Carries MCP between standard input and output and the service, message by message. All that is said comes from the
 * service; only while it is away does the bridge speak, so that the client keeps it and finds the tools once it is back.
 */
export async function bridgeMcp({ lines, write, post, version }: BridgeOptions): Promise<void> {
  const underWay = new Set<Promise<void>>()
  const ended = new AbortController()
  let watching = false
  /** Once it is known to be away, nobody has to wait to hear it again. */
  let isAway = false

  async function carry(line: string) {
    const message = parse(line)
    if (message === undefined) {
      say({ id: null, error: { code: PARSE_ERROR, message: 'The line is not JSON' } })
      return
    }
    try {
      for (const answer of await ask(line, message)) write(answer)
    } catch (thrown) {
      const error = asAppError(thrown)
      for (const one of Array.isArray(message) ? message : [message]) speakFor(one, error)
    }
  }

  async function ask(body: string, message: JsonRpcMessage | JsonRpcMessage[]): Promise<string[]> {
    // The key makes it act once, however often it has to be sent (C25).
    const headers = { ...protocolHeaders(message), 'idempotency-key': newIdempotencyKey() }
    const deadline = Date.now() + (isAway ? 0 : PATIENCE_MS)
    for (let failures = 0; ; failures++) {
      try {
        const { status, text } = await post(body, headers)
        if (status >= 400) throwRefusal(text)
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

  function speakFor({ id, method, params }: JsonRpcMessage, error: AppError) {
    if (id === undefined || method === undefined) return
    const unheard = isTemporary(error)
    if (method === 'tools/call') say({ id, result: failedCall(error) })
    else if (method === 'ping' && unheard) say({ id, result: {} })
    else if (method === 'initialize' && unheard) {
      say({ id, result: greeting(params?.protocolVersion, error, version) })
      void watch()
    } else {
      say({ id, error: { code: SERVER_ERROR, message: textOf(error), data: errorReceipt(error) } })
      if (method === 'tools/list' && unheard) void watch()
    }
  }

  /** Tells the client to look at the tools again once there is somebody to ask. */
  async function watch() {
    if (watching) return
    watching = true
    while (watching && !ended.signal.aborted) {
      await wait(LOOK_MS, ended.signal)
      try {
        await post(PING, protocolHeaders({}))
        watching = false
        say({ method: 'notifications/tools/list_changed' })
      } catch {
        // Not yet.
      }
    }
  }

  const say = (message: object) => write(JSON.stringify({ jsonrpc: '2.0', ...message }))

  for await (const line of lines) {
    if (line.trim() === '') continue
    const carried: Promise<void> = carry(line).finally(() => underWay.delete(carried))
    underWay.add(carried)
  }
  await Promise.all(underWay)
  ended.abort()
}

const PARSE_ERROR = -32_700
const SERVER_ERROR = -32_000
const PING = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'ping' })
/** The last revision that begins with `initialize`. */
const GREETED_VERSION = '2025-11-25'
const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion'

/** On HTTP the newer revisions repeat in headers what their messages say, for whatever stands in between. */
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
  // What cannot be a header is left out, and the service says what is missing.
  return {
    ...plain,
    ...Object.fromEntries(Object.entries(all).filter(([, value]) => /^[!-~]+$/.test(value))),
  }
}

/** An answer is JSON, a stream of events that has ended, or nothing at all. */
function messagesIn(text: string): string[] {
  if (text === '') return []
  if (parse(text) !== undefined) return [text]
  return text.split('\n').flatMap((line) => (line.startsWith('data: ') ? [line.slice('data: '.length)] : []))
}

/** What is refused before it gets to the protocol, such as a wrong token, is told in the words of the API. */
function throwRefusal(text: string): void {
  const said = parse(text) as
    | { status?: unknown; code?: ErrorCode; message?: string; hint?: string }
    | undefined
  if (said?.status !== 'error' || said.code === undefined) return
  throw new AppError(said.code, said.message ?? said.code, said.hint === undefined ? {} : { hint: said.hint })
}

function isTemporary(error: unknown): boolean {
  return (
    error instanceof AppError && (error.code === 'SERVICE_UNREACHABLE' || error.code === 'SERVICE_STOPPING')
  )
}

/** A failed call is for the model to read. */
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
    instructions: `Orchub is away: ${textOf(error)} Its tools are there again once it is back.`,
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
