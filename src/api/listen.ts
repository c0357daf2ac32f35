import { chmodSync, lstatSync, unlinkSync } from 'node:fs'
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { isMainThread } from 'node:worker_threads'
import { AppError } from '../base/errors.ts'
import { errorReceipt } from '../protocol/receipt.ts'
import { bracketed } from './host-origin-check.ts'
import { HTTP_STATUS } from './http-response.ts'

export type Listen = { host: string; port: number } | { unixSocket: string }

interface Listening {
  readonly url: string
  /** Undefined on a Unix socket. */
  readonly port: number | undefined
  /** Stops accepting connections, gives open requests this long to finish, and frees the port. */
  close(graceMs: number): Promise<void>
}

/** A slow sender holds a connection: these are its limits for the headers and for the whole request. */
const REQUEST_TIMEOUTS = {
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  connectionsCheckingInterval: 2_000,
}
const KEEP_ALIVE_MS = 30_000
const IDLE_CHECK_MS = 10

export async function listenOn(listen: Listen, listener: RequestListener): Promise<Listening> {
  const server = createServer(
    // `authenticate` refuses a missing Host itself, with the same error as a wrong one.
    { ...REQUEST_TIMEOUTS, keepAliveTimeout: KEEP_ALIVE_MS, requireHostHeader: false, noDelay: true },
    listener,
  )
  // `readText` decides whether to accept the body and then sends 100 Continue.
  server.on('checkContinue', listener)
  server.on('clientError', answerMalformed)
  if ('unixSocket' in listen) await listenOnSocket(server, listen.unixSocket)
  else await bind(server, () => server.listen(listen.port, listen.host), listen)
  const port = 'unixSocket' in listen ? undefined : (server.address() as AddressInfo).port
  return { url: urlOf(listen, port), port, close: (graceMs) => closeServer(server, graceMs) }
}

/** Only the owner may connect. Replaces the socket file of a dead service but not that of a live one. */
async function listenOnSocket(server: Server, path: string): Promise<void> {
  const start = () => {
    // The umask makes the file private from the start. Worker threads cannot set it; there the chmod below follows at once.
    const mask = isMainThread ? process.umask(0o177) : undefined
    try {
      server.listen(path)
    } finally {
      if (mask !== undefined) process.umask(mask)
    }
  }
  if (isSocket(path) && !(await isAnswered(path))) unlinkSync(path)
  await bind(server, start, { unixSocket: path })
  chmodSync(path, 0o600)
}

function isSocket(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSocket() === true
}

function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    // A full backlog or a permission error means a live listener; only a refused connection means a dead one.
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'))
  })
}

function bind(server: Server, start: () => void, listen: Listen): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: Error) => reject(cannotListen(error, listen))
    server.once('error', failed)
    server.once('listening', () => {
      server.off('error', failed)
      resolve()
    })
    start()
  })
}

function cannotListen(error: NodeJS.ErrnoException, listen: Listen): AppError {
  const address = 'unixSocket' in listen ? listen.unixSocket : `${bracketed(listen.host)}:${listen.port}`
  const [code, message, hint] = LISTEN_ERRORS[error.code ?? ''] ?? OTHER_LISTEN_ERROR
  return new AppError(code, `Cannot listen on ${address}: ${message} (${error.code})`, { hint, cause: error })
}

type ListenError = readonly ['CONFLICT' | 'CONFIG_INVALID', message: string, hint: string]

const LISTEN_ERRORS: Record<string, ListenError> = {
  EADDRINUSE: [
    'CONFLICT',
    'the address is already in use',
    'If an older Orchub uses it, stop that one. Otherwise choose another port: --port N, or service.port in orc.yaml (0 picks a free one).',
  ],
  EACCES: [
    'CONFIG_INVALID',
    'permission denied',
    'Ports below 1024 need administrator rights; choose a higher port, or a folder you can write to.',
  ],
  EADDRNOTAVAIL: [
    'CONFIG_INVALID',
    'this machine does not have that address',
    'Set service.host to 127.0.0.1 or to one of this machine’s own addresses.',
  ],
  ENOTFOUND: ['CONFIG_INVALID', 'unknown host name', 'Set service.host to 127.0.0.1.'],
  ENOENT: ['CONFIG_INVALID', 'the folder does not exist', 'Create the folder of service.unix_socket.'],
}
const OTHER_LISTEN_ERROR: ListenError = [
  'CONFIG_INVALID',
  'the operating system refused',
  'Check service in orc.yaml.',
]

function urlOf(listen: Listen, port: number | undefined): string {
  if ('unixSocket' in listen) return `unix:${listen.unixSocket}`
  const everywhere = listen.host === '0.0.0.0' || listen.host === '::' || listen.host === ''
  return `http://${everywhere ? '127.0.0.1' : bracketed(listen.host)}:${port}`
}

/** Answers requests that Node's parser rejects in the same form as every other error. */
function answerMalformed(error: NodeJS.ErrnoException, socket: Socket) {
  // Node stores the current response here. Nothing may be written into the middle of one, such as a stream.
  const { _httpMessage: underWay } = socket as Socket & { _httpMessage?: ServerResponse }
  if (error.code === 'ECONNRESET' || !socket.writable || underWay?.headersSent === true) {
    socket.destroy()
    return
  }
  const refusal =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? new AppError('TOO_LARGE', 'The headers are over 16 KiB')
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? new AppError('INVALID_REQUEST', 'The request took too long to arrive')
        : new AppError('INVALID_REQUEST', 'This is not a well-formed HTTP/1.1 request')
  const json = JSON.stringify(errorReceipt(refusal))
  const status = HTTP_STATUS[refusal.code]
  socket.end(
    `HTTP/1.1 ${status} Refused\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(json)}\r\nconnection: close\r\n\r\n${json}`,
  )
}

function closeServer(server: Server, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => server.closeAllConnections(), graceMs)
    // A keep-alive connection becomes idle after its response and would otherwise wait for another request.
    const idle = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS)
    server.close(() => {
      clearTimeout(timer)
      clearInterval(idle)
      resolve()
    })
  })
}
