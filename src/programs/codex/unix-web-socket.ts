/** A WebSocket over a unix socket: what Node's own WebSocket cannot do. Client side, text only, RFC 6455. */
import { createHash, randomBytes } from 'node:crypto'
import { request } from 'node:http'
import type { Socket } from 'node:net'

const ACCEPT_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const CONTINUATION = 0x0
const TEXT = 0x1
const CLOSE = 0x8
const PING = 0x9
const PONG = 0xa
const FINAL = 0x80
const MASKED = 0x80

/** A conversation of weeks fits; a peer that went mad does not take our memory. */
const LARGEST_MESSAGE = 256 * 1024 * 1024

export interface UnixWebSocket {
  /** False when the connection is over and nothing was sent. */
  send(text: string): boolean
  close(): void
  /** Resolves, never rejects, with why it ended. */
  readonly closed: Promise<string>
}

/** Rejects when nobody listens at that path, or nobody who speaks WebSocket. */
export function openUnixWebSocket(path: string, onText: (text: string) => void): Promise<UnixWebSocket> {
  const key = randomBytes(16).toString('base64')
  const expected = createHash('sha1')
    .update(key + ACCEPT_SUFFIX)
    .digest('base64')
  return new Promise((resolve, reject) => {
    const handshake = request({
      socketPath: path,
      path: '/',
      headers: {
        Host: 'localhost',
        Connection: 'Upgrade',
        Upgrade: 'websocket',
        'Sec-WebSocket-Version': '13',
        'Sec-WebSocket-Key': key,
      },
    })
    handshake.on('upgrade', (response, socket, head) => {
      if (response.headers['sec-websocket-accept'] === expected) {
        resolve(speak(socket as Socket, head, onText))
      } else {
        socket.destroy()
        reject(new Error(`${path} did not answer the WebSocket handshake`))
      }
    })
    handshake.on('response', (response) => {
      response.destroy()
      reject(new Error(`${path} answered ${response.statusCode} to the WebSocket handshake`))
    })
    handshake.on('error', reject)
    handshake.end()
  })
}

function speak(socket: Socket, head: Buffer, onText: (text: string) => void): UnixWebSocket {
  const { promise: closed, resolve: end } = Promise.withResolvers<string>()
  const frames = createFrameReader()
  let pieces: Buffer[] = []

  function take(chunk: Buffer) {
    for (const frame of frames.read(chunk)) {
      if (frame === 'too large') return socket.destroy(new Error('a message is too large'))
      if (frame.opcode === PING) socket.write(encodeFrame(PONG, frame.payload))
      if (frame.opcode === CLOSE) return close()
      if (frame.opcode === TEXT || frame.opcode === CONTINUATION) {
        pieces.push(frame.payload)
        if (!frame.final) continue
        const text = Buffer.concat(pieces).toString('utf8')
        pieces = []
        onText(text)
      }
    }
  }

  function close() {
    if (socket.writable) socket.write(encodeFrame(CLOSE, Buffer.alloc(0)))
    socket.destroySoon()
  }

  socket.on('data', take)
  socket.on('error', (error) => end(error.message))
  socket.on('close', () => end('the connection was closed'))
  if (head.length > 0) take(head)
  return {
    closed,
    close,
    send: (text) => {
      if (!socket.writable) return false
      socket.write(encodeFrame(TEXT, Buffer.from(text)))
      return true
    },
  }
}

interface Frame {
  readonly opcode: number
  readonly final: boolean
  readonly payload: Buffer
}

/** Cuts the byte stream into frames, wherever the chunks end. A server's frames are never masked. */
export function createFrameReader() {
  let chunks: Buffer[] = []
  let size = 0
  /** Bytes of the frame at the front, as soon as its header is whole. */
  let wanted = 2

  function* read(chunk: Buffer): Generator<Frame | 'too large'> {
    chunks.push(chunk)
    size += chunk.length
    while (size >= wanted) {
      const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
      chunks = [bytes]
      const header = readHeader(bytes)
      if (header === undefined || size < header.start + header.length) {
        // A large frame is joined once, when all of it is there.
        wanted = header === undefined ? size + 1 : header.start + header.length
        if (wanted > LARGEST_MESSAGE) yield 'too large'
        return
      }
      const end = header.start + header.length
      chunks = [bytes.subarray(end)]
      size -= end
      wanted = 2
      yield {
        opcode: bytes[0]! & 0x0f,
        final: (bytes[0]! & FINAL) !== 0,
        payload: bytes.subarray(header.start, end),
      }
    }
  }
  return { read }
}

function readHeader(bytes: Buffer): { start: number; length: number } | undefined {
  const length = bytes[1]! & 0x7f
  if (length < 126) return { start: 2, length }
  if (length === 126) return bytes.length < 4 ? undefined : { start: 4, length: bytes.readUInt16BE(2) }
  return bytes.length < 10 ? undefined : { start: 10, length: Number(bytes.readBigUInt64BE(2)) }
}

export function encodeFrame(opcode: number, payload: Buffer): Buffer {
  const { length } = payload
  const extra = length < 126 ? 0 : length < 65_536 ? 2 : 8
  const frame = Buffer.alloc(6 + extra + length)
  frame[0] = FINAL | opcode
  frame[1] = MASKED | (extra === 0 ? length : extra === 2 ? 126 : 127)
  if (extra === 2) frame.writeUInt16BE(length, 2)
  if (extra === 8) frame.writeBigUInt64BE(BigInt(length), 2)
  const mask = randomBytes(4)
  mask.copy(frame, 2 + extra)
  for (let i = 0; i < length; i += 1) frame[6 + extra + i] = payload[i]! ^ mask[i & 3]!
  return frame
}
