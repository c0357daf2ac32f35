import { connect, type Socket } from 'node:net'
import { AppError } from '../model/errors.ts'

export interface Request {
  method: 'GET' | 'POST'
  path: string
  token: string
  body?: string
  idempotencyKey?: string
}

export interface Answer {
  status: number
  body: string
}

const TIMEOUT_MS = 60_000

/**
 * One HTTP/1.1 exchange over a bare socket. A short command must start as fast as Node itself: loading fetch takes
 * longer than all of the rest together, loading node:http nearly so (bench/RESULTS.md).
 */
export async function exchange(address: string, request: Request): Promise<Answer> {
  const { socket, host } = await open(address)
  return await new Promise<Answer>((resolve, reject) => {
    const chunks: Buffer[] = []
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)))
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.on('error', (error) => reject(unreachable(address, error)))
    socket.on('end', () => {
      socket.destroy()
      const answer = parseAnswer(Buffer.concat(chunks))
      if (answer === undefined) reject(unreachable(address, new Error('its answer was cut off')))
      else resolve(answer)
    })
    socket.write(renderRequest(request, host))
  })
}

async function open(address: string): Promise<{ socket: Socket; host: string }> {
  if (address.startsWith('unix:'))
    return { socket: connect(address.slice('unix:'.length)), host: 'localhost' }
  const url = URL.parse(address)
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new AppError('USAGE', `"${address}" is no address of a service`, {
      hint: 'ORC_URL is such as http://127.0.0.1:7420 or unix:/path/to/socket',
    })
  }
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (url.protocol === 'https:') {
    const tls = await import('node:tls')
    return { socket: tls.connect({ host, port: Number(url.port || 443), servername: host }), host: url.host }
  }
  return { socket: connect(Number(url.port || 80), host), host: url.host }
}

function renderRequest({ method, path, token, body, idempotencyKey }: Request, host: string): string {
  const lines = [
    `${method} ${path} HTTP/1.1`,
    `Host: ${host}`,
    `Authorization: Bearer ${token}`,
    'Connection: close',
  ]
  if (idempotencyKey !== undefined) lines.push(`Idempotency-Key: ${idempotencyKey}`)
  if (body !== undefined) {
    lines.push('Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`)
  }
  return `${lines.join('\r\n')}\r\n\r\n${body ?? ''}`
}

export function parseJson<T>(address: string, body: string): T {
  try {
    return JSON.parse(body)
  } catch {
    throw new AppError('SERVICE_UNREACHABLE', `What answers at ${address} is not Orchub`, {
      hint: 'Does ORC_URL point to something else?',
    })
  }
}

/** Undefined for what is not a whole answer. */
export function parseAnswer(bytes: Buffer): Answer | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end === -1) return undefined
  const head = bytes.toString('latin1', 0, end)
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1]
  if (status === undefined) return undefined
  const rest = bytes.subarray(end + 4)
  const body = bodyOf(head, rest)
  return body === undefined ? undefined : { status: Number(status), body: body.toString('utf8') }
}

function bodyOf(head: string, rest: Buffer): Buffer | undefined {
  if (/^transfer-encoding:.*\bchunked\b/im.test(head)) return joinChunks(rest)
  const length = /^content-length: *(\d+)/im.exec(head)?.[1]
  if (length === undefined) return rest
  return rest.length < Number(length) ? undefined : rest.subarray(0, Number(length))
}

function joinChunks(rest: Buffer): Buffer | undefined {
  const parts: Buffer[] = []
  for (let at = 0; ; ) {
    const lineEnd = rest.indexOf('\r\n', at)
    const size = Number.parseInt(rest.toString('latin1', at, lineEnd), 16)
    if (lineEnd === -1 || Number.isNaN(size)) return undefined
    if (size === 0) return Buffer.concat(parts)
    const begin = lineEnd + 2
    if (begin + size > rest.length) return undefined
    parts.push(rest.subarray(begin, begin + size))
    at = begin + size + 2
  }
}

export function unreachable(address: string, cause: Error): AppError {
  const refused = /ECONNREFUSED|ENOENT/.test((cause as NodeJS.ErrnoException).code ?? '')
  return new AppError('SERVICE_UNREACHABLE', `The service at ${address} does not answer: ${cause.message}`, {
    hint: refused
      ? 'Start it: orc serve. `orc doctor` says more.'
      : 'Whether the command was carried out is not known; `orc messages` or `orc audit --since 1m` shows it.',
    cause,
  })
}
