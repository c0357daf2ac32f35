import { chmodSync, lstatSync, unlinkSync } from 'node:fs'
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { isMainThread } from 'node:worker_threads'
import { AppError } from '../../base/errors.ts'
import { errorReceipt } from '../../protocol/receipt.ts'
import { bracketed } from './hosts.ts'
import { HTTP_STATUS } from './status.ts'

export type Listen = { host: string; port: number } | { unixSocket: string }

interface Listening {
  readonly url: string
  /** Undefined on a Unix socket. */
  readonly port: number | undefined
  /** Takes no more connections, lets requests under way end for so long, and frees the port. */
  close(graceMs: number): Promise<void>
}

/** Whoever dawdles over a request holds a connection: it gets this long for the head, and for the whole. */
const SLOWEST = { headersTimeout: 10_000, requestTimeout: 60_000, connectionsCheckingInterval: 2_000 }
const KEEP_ALIVE_MS = 30_000
const IDLE_CHECK_MS = 10

export async function listenOn(listen: Listen, listener: RequestListener): Promise<Listening> {
  const server = createServer(
    // The gate judges a missing Host by itself, in the same words as a wrong one.
    { ...SLOWEST, keepAliveTimeout: KEEP_ALIVE_MS, requireHostHeader: false, noDelay: true },
    listener,
  )
  // Whether the body is wanted is said when it is read.
  server.on('checkContinue', listener)
  server.on('clientError', answerMalformed)
  if ('unixSocket' in listen) await listenOnSocket(server, listen.unixSocket)
  else await bind(server, () => server.listen(listen.port, listen.host), listen)
  const port = 'unixSocket' in listen ? undefined : (server.address() as AddressInfo).port
  return { url: urlOf(listen, port), port, close: (graceMs) => closeServer(server, graceMs) }
}

/** Only its owner may connect. A file that a dead service left behind is replaced; a living one keeps its own. */
async function listenOnSocket(server: Server, path: string): Promise<void> {
  const start = () => {
    // The mode is right from the first moment on; a worker thread cannot set it, and there chmod follows at once.
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
    // Full, or not ours to ask: somebody is there. Only a refusal shows that nobody is.
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
  const place = 'unixSocket' in listen ? listen.unixSocket : `${bracketed(listen.host)}:${listen.port}`
  const [code, message, hint] = TROUBLES[error.code ?? ''] ?? OTHER_TROUBLE
  return new AppError(code, `Cannot listen on ${place}: ${message} (${error.code})`, { hint, cause: error })
}

type Trouble = readonly ['CONFLICT' | 'CONFIG_INVALID', message: string, hint: string]

const TROUBLES: Record<string, Trouble> = {
  EADDRINUSE: [
    'CONFLICT',
    'something listens there already',
    'Stop it if it is an older Orchub, or choose another place: --port N, or service.port in orc.yaml (0 takes a free one).',
  ],
  EACCES: [
    'CONFIG_INVALID',
    'it is not permitted',
    'Ports below 1024 belong to the administrator; choose a higher one, or a folder you may write to.',
  ],
  EADDRNOTAVAIL: [
    'CONFIG_INVALID',
    'this machine does not have that address',
    'Use 127.0.0.1, or one of the machine’s own addresses, for service.host.',
  ],
  ENOTFOUND: ['CONFIG_INVALID', 'there is no such host', 'Use 127.0.0.1 for service.host.'],
  ENOENT: ['CONFIG_INVALID', 'its folder does not exist', 'Create the folder of service.unix_socket.'],
}
const OTHER_TROUBLE: Trouble = ['CONFIG_INVALID', 'the system refused', 'Check service in orc.yaml.']

function urlOf(listen: Listen, port: number | undefined): string {
  if ('unixSocket' in listen) return `unix:${listen.unixSocket}`
  const everywhere = listen.host === '0.0.0.0' || listen.host === '::' || listen.host === ''
  return `http://${everywhere ? '127.0.0.1' : bracketed(listen.host)}:${port}`
}

/** What node's parser rejects gets an answer of the same form as everything else. */
function answerMalformed(error: NodeJS.ErrnoException, socket: Socket) {
  // Node keeps the answer under way here. Into the middle of one, such as a stream, nothing else may be written.
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
    // A connection that is kept alive becomes idle when its answer is out, and would then wait for another request.
    const idle = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS)
    server.close(() => {
      clearTimeout(timer)
      clearInterval(idle)
      resolve()
    })
  })
}
