import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { AppError } from '../../base/errors.ts'
import { type ErrorReceipt, errorReceipt, type Receipt } from '../../protocol/receipt.ts'
import { HTTP_STATUS, statusOf } from './status.ts'

/** On every answer: it is data for programs, never a page, and never to be kept by anyone in between. */
export const SECURITY_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
} as const

/** What a refused caller may still send while it reads why it was refused. */
const LINGER = { ms: 500, bytes: 32 * 1024 * 1024 }

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

/** Refuses a request. Its body may be unread and endless, so that the connection ends with the answer. */
export function refuse(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  error: AppError,
  more?: OutgoingHttpHeaders,
) {
  if (outgoing.destroyed) return
  if (outgoing.headersSent) {
    // Half an answer is out. Only a broken connection tells the reader that it is not whole.
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
  // The answer is out at once; closing waits a little, for a reset would take the answer from the other side.
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
