import { AppError, type ErrorCode } from '../base/errors.ts'

/** The part of `fetch` that is used, so that a Unix socket or a test can replace it. */
export type FetchLike = (url: string, init: FetchInit) => Promise<FetchAnswer>

export interface FetchInit {
  method: string
  headers: Record<string, string>
  body?: string
  signal?: AbortSignal
  redirect: 'error'
  cache: 'no-store'
}

export interface FetchAnswer {
  readonly status: number
  readonly body: ReadableStream<Uint8Array> | null
  text(): Promise<string>
}

/** The service answered with an error, or did not answer. */
export class ClientError extends AppError {
  /** The HTTP status; undefined when there was no answer. */
  readonly status: number | undefined

  constructor(
    code: ErrorCode,
    message: string,
    details: { hint?: string; status?: number; retryAfterMs?: number; cause?: unknown },
  ) {
    const { hint, status, retryAfterMs, cause } = details
    super(code, message, {
      ...(hint === undefined ? {} : { hint }),
      ...(retryAfterMs === undefined ? {} : { data: { retryAfterMs } }),
      ...(cause === undefined ? {} : { cause }),
    })
    this.name = 'ClientError'
    this.status = status
  }

  /** Whether a retry may succeed. */
  get isTemporary(): boolean {
    return isTemporary(this)
  }
}

const TEMPORARY: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'SERVICE_UNREACHABLE',
  'SERVICE_STOPPING',
  'STORE_UNAVAILABLE',
])

/** Whether the error ends when the service or its store is back. */
export function isTemporary(error: unknown): boolean {
  return error instanceof AppError && TEMPORARY.has(error.code)
}

export interface HttpRequest {
  method: 'GET' | 'POST' | 'DELETE'
  path: string
  query?: object
  headers?: Record<string, string>
  body?: string
  signal?: AbortSignal | undefined
  /** Closes a stream after this long without data. */
  silenceMs?: number
}

export interface Transport {
  /** Returns the answer whatever its status; throws only without an answer. */
  send(request: HttpRequest): Promise<{ status: number; text: string }>
  /** Reads the body of a successful answer in pieces. */
  open(request: HttpRequest): Promise<AsyncIterable<string>>
}

export function createTransport(url: string, token: string, fetch: FetchLike | undefined): Transport {
  const isSocket = url.startsWith('unix:')
  if (isSocket && fetch === undefined) {
    throw new AppError('USAGE', 'The built-in fetch cannot connect to a Unix socket', {
      hint: 'Pass createClient a `fetch` that connects to it.',
    })
  }
  const base = isSocket ? 'http://localhost' : url.replace(/\/+$/, '')
  const get: FetchLike = fetch ?? ((target, init) => globalThis.fetch(target, init))

  async function call({ method, path, query, headers, body, signal }: HttpRequest): Promise<FetchAnswer> {
    try {
      return await get(base + path + queryString(query), {
        method,
        headers: { authorization: `Bearer ${token}`, ...headers },
        ...(body === undefined ? {} : { body }),
        ...(signal === undefined ? {} : { signal }),
        // The service never redirects; another server must not get the token.
        redirect: 'error',
        cache: 'no-store',
      })
    } catch (error) {
      throw signal?.aborted === true ? error : unreachable(url, error)
    }
  }

  return {
    async send(request) {
      const answer = await call(request)
      try {
        return { status: answer.status, text: await answer.text() }
      } catch (error) {
        throw request.signal?.aborted === true ? error : unreachable(url, error)
      }
    },
    async open(request) {
      const answer = await call(request)
      if (answer.status === 200 && answer.body !== null) return pieces(answer.body, url, request)
      throw refusal(answer.status, await answer.text())
    },
  }
}

/** Converts an answer other than 200 into an error. */
export function refusal(status: number, text: string): ClientError {
  const answer = parse(text) as
    | { code?: ErrorCode; message?: string; hint?: string; retry_after_ms?: number }
    | undefined
  if (typeof answer?.code !== 'string') {
    return new ClientError('SERVICE_UNREACHABLE', `The server answered ${status}, but it is not Orchub`, {
      status,
      hint: 'Check the address: another program may listen there.',
    })
  }
  return new ClientError(answer.code, answer.message ?? answer.code, {
    status,
    ...(answer.hint === undefined ? {} : { hint: answer.hint }),
    ...(answer.retry_after_ms === undefined ? {} : { retryAfterMs: answer.retry_after_ms }),
  })
}

export function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function unreachable(url: string, cause: unknown): ClientError {
  return new ClientError('SERVICE_UNREACHABLE', `The service at ${url} does not answer`, {
    hint: 'Start it with `orc up`, or check the address.',
    cause,
  })
}

async function* pieces(
  body: ReadableStream<Uint8Array>,
  url: string,
  { signal, silenceMs }: HttpRequest,
): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  // Not `for await`: some browsers can't iterate over a stream.
  const reader = body.getReader()
  const read = () => (silenceMs === undefined ? reader.read() : withTimeout(reader.read(), silenceMs))
  try {
    for (let next = await read(); !next.done; next = await read()) {
      yield decoder.decode(next.value, { stream: true })
    }
  } catch (error) {
    throw signal?.aborted === true ? error : unreachable(url, error)
  } finally {
    await reader.cancel().catch(() => {})
  }
}

async function withTimeout<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`No data for ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([work, silence])
  } finally {
    clearTimeout(timer)
  }
}

function queryString(query: object | undefined): string {
  const pairs = Object.entries(query ?? {}).filter(([, value]) => value !== undefined)
  if (pairs.length === 0) return ''
  return `?${new URLSearchParams(pairs.map(([key, value]) => [key, String(value)]))}`
}

/**
 * A UUID version 7. It begins with the time, so new keys are appended to the store's index; random keys would be
 * inserted all over it.
 */
export function newIdempotencyKey(now = Date.now()): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  for (let index = 0; index < 6; index++) bytes[index] = Math.floor(now / 2 ** (8 * (5 - index))) % 256
  bytes[6] = 0x70 | (bytes[6]! & 0x0f)
  bytes[8] = 0x80 | (bytes[8]! & 0x3f)
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** Splits a text that comes in pieces into lines. Text after the last line end comes last. */
export async function* readLines(pieces: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = ''
  for await (const piece of pieces) {
    const lines = (rest + piece).split('\n')
    rest = lines.pop()!
    yield* lines
  }
  if (rest !== '') yield rest
}

interface ServerEvent {
  id: string | undefined
  /** Undefined for a block that only has the position of the stream. */
  data: string | undefined
}

/** Parses server-sent events as this service writes them: lines end with a line feed, data is one line. */
export async function* readEvents(pieces: AsyncIterable<string>): AsyncGenerator<ServerEvent> {
  let id: string | undefined
  let data: string | undefined
  for await (const line of readLines(pieces)) {
    if (line === '') {
      if (id !== undefined || data !== undefined) yield { id, data }
      id = undefined
      data = undefined
    } else if (line.startsWith('id: ')) id = line.slice(4)
    else if (line.startsWith('data: ')) data = line.slice(6)
  }
  // A block without its empty line is incomplete, and comes again after a reconnection.
}
