import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { AppError, type ErrorCode } from '../base/errors.ts'
import { type ErrorReceipt, errorReceipt, type Receipt } from '../protocol/receipt.ts'

/** Sent with every response: the API returns data, never a page, and no cache may store it. */
export const SECURITY_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
} as const

/** How long, and for how many bytes, a refused caller may keep sending while it reads the refusal. */
const LINGER = { ms: 500, bytes: 32 * 1024 * 1024 }

/** A reader that accepts no data for this long is disconnected, because its open socket holds resources. */
const STALL_MS = 60_000

export function sendJson(outgoing: ServerResponse, status: number, json: string, more?: OutgoingHttpHeaders) {
  send(outgoing, status, 'application/json', json, more)
}

export function send(
  outgoing: ServerResponse,
  status: number,
  type: string,
  text: string,
  more?: OutgoingHttpHeaders,
) {
  if (outgoing.destroyed) return
  outgoing.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(text),
    ...SECURITY_HEADERS,
    ...more,
  })
  outgoing.end(text)
}

export function sendReceipt(outgoing: ServerResponse, receipt: Receipt) {
  const more = receipt.status === 'error' ? errorHeaders(receipt) : undefined
  sendJson(outgoing, statusOf(receipt), JSON.stringify(receipt), more)
}

/** Refuses a request. Its body may be unread and endless, so the connection closes after the response. */
export function refuse(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  error: AppError,
  more?: OutgoingHttpHeaders,
) {
  if (outgoing.destroyed) return
  if (outgoing.headersSent) {
    // Half a response is out. Only a broken connection tells the reader that it is incomplete.
    outgoing.destroy()
    return
  }
  const receipt = errorReceipt(error)
  const headers = { ...errorHeaders(receipt), ...more }
  const json = JSON.stringify(receipt)
  if (incoming.complete || !hasBody(incoming)) {
    sendJson(outgoing, HTTP_STATUS[error.code], json, headers)
    return
  }
  outgoing.writeHead(HTTP_STATUS[error.code], {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(json),
    connection: 'close',
    ...SECURITY_HEADERS,
    ...headers,
  })
  // Write the response now but close later: an immediate reset could discard it before the client reads it.
  outgoing.write(json)
  linger(incoming, () => outgoing.end())
}

function linger(incoming: IncomingMessage, close: () => void) {
  let bytes = 0
  const timer = setTimeout(close, LINGER.ms)
  timer.unref()
  const done = () => {
    clearTimeout(timer)
    close()
  }
  incoming.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > LINGER.bytes) done()
  })
  incoming.once('end', done)
  incoming.once('error', done)
  incoming.resume()
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

function errorHeaders(receipt: ErrorReceipt): OutgoingHttpHeaders | undefined {
  if (receipt.code === 'UNAUTHENTICATED') return { 'www-authenticate': 'Bearer realm="orchub"' }
  if (receipt.retry_after_ms === undefined) return undefined
  return { 'retry-after': String(Math.ceil(receipt.retry_after_ms / 1000)) }
}

export function unauthenticated(message: string): AppError {
  return new AppError('UNAUTHENTICATED', message, {
    hint: 'Send the header `Authorization: Bearer TOKEN`. `orc token create AGENT` makes a token for an agent.',
  })
}

/** The HTTP status of every error code. A new code does not compile until it has one. */
export const HTTP_STATUS: Record<ErrorCode, number> = {
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  FORBIDDEN_HOST: 403,
  SENDER_MISMATCH: 403,
  UNKNOWN_COMMAND: 400,
  INVALID_COMMAND: 400,
  INVALID_REQUEST: 400,
  UNKNOWN_AGENT: 404,
  UNKNOWN_RECIPIENT: 404,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  TOO_LARGE: 413,
  RATE_LIMITED: 429,
  IDEMPOTENCY_CONFLICT: 409,
  CONFLICT: 409,
  HALTED: 423,
  RUNTIME_FAILED: 502,
  RUNTIME_MISSING: 502,
  PROGRAM_MISSING: 502,
  PROGRAM_FAILED: 502,
  NOT_EXTRACTED: 422,
  CONFIG_INVALID: 500,
  PLAN_INVALID: 422,
  STORE_LOCKED: 503,
  STORE_NEWER: 503,
  STORE_FULL: 507,
  STORE_CORRUPT: 500,
  STORE_UNAVAILABLE: 503,
  FENCED: 503,
  SERVICE_UNREACHABLE: 502,
  SERVICE_STOPPING: 503,
  USAGE: 400,
  INTERNAL: 500,
}

/** The status of a single receipt. Held is 202: accepted, but not done yet. */
function statusOf(receipt: Receipt): number {
  switch (receipt.status) {
    case 'delivered':
    case 'ok':
      return 200
    case 'held':
      return 202
    case 'blocked':
      return 403
    case 'error':
      return HTTP_STATUS[receipt.code]
  }
}

interface StreamFrame {
  type: string
  before: string
  between: string
  after: string
}

export function arrayFrame(name: string): StreamFrame {
  return { type: 'application/json', before: `{"${name}":[`, between: ',', after: ']}' }
}

export const LINES: StreamFrame = { type: 'application/x-ndjson', before: '', between: '', after: '' }

const CHUNK = 64 * 1024

/**
 * Streams any number of items with one chunk in memory, at the reader's pace, yielding to other requests between
 * chunks. An error before the first chunk is thrown and can still become an error response; a later one breaks the
 * connection, so no client mistakes a part for the whole.
 */
export async function streamJson(
  outgoing: ServerResponse,
  frame: StreamFrame,
  items: AsyncIterable<string>,
): Promise<void> {
  let text = frame.before
  let first = true
  for await (const item of items) {
    if (!first) text += frame.between
    first = false
    text += item
    if (text.length < CHUNK) continue
    if (outgoing.destroyed) return
    if (!outgoing.headersSent) outgoing.writeHead(200, { 'content-type': frame.type, ...SECURITY_HEADERS })
    if (outgoing.write(text)) await setImmediate()
    else await drained(outgoing)
    text = ''
  }
  text += frame.after
  if (!outgoing.headersSent) send(outgoing, 200, frame.type, text)
  else outgoing.end(text)
}

/** Resolves when the reader has taken everything written, or is gone; check `outgoing.destroyed` afterwards. */
export async function drained(outgoing: ServerResponse, signal?: AbortSignal): Promise<void> {
  if (!outgoing.writableNeedDrain || outgoing.destroyed || signal?.aborted === true) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(() => outgoing.destroy(), STALL_MS)
  const done = () => resolve()
  outgoing.once('drain', done)
  outgoing.once('close', done)
  signal?.addEventListener('abort', done, { once: true })
  try {
    await promise
  } finally {
    clearTimeout(timer)
    outgoing.off('drain', done)
    outgoing.off('close', done)
    signal?.removeEventListener('abort', done)
  }
}
