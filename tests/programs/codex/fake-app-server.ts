/** An app-server on a unix socket that answers as a test says: for what the real one cannot be brought to do. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Call {
  readonly id?: number
  readonly method?: string
  readonly params?: Record<string, unknown>
  readonly result?: unknown
}

/** A result, or an error with that message; undefined: no answer ever. */
export type Answer = { result: unknown } | { error: string } | undefined

export async function startFakeAppServer(answer: (call: Call) => Answer) {
  const folder = await mkdtemp(join(tmpdir(), 'orc-codex-'))
  const path = join(folder, 's')
  const sockets = new Set<Socket>()
  const calls: Call[] = []
  const pongs: string[] = []
  const server = createServer()
  server.on('upgrade', (request, socket: Socket) => {
    const accept = createHash('sha1')
      .update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest('base64')
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    )
    sockets.add(socket)
    let bytes = Buffer.alloc(0)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', (chunk) => {
      bytes = Buffer.concat([bytes, chunk])
      for (let frame = unmask(bytes); frame !== undefined; frame = unmask(bytes)) {
        bytes = bytes.subarray(frame.end)
        take(socket, frame)
      }
    })
  })

  function take(socket: Socket, frame: { opcode: number; payload: Buffer }) {
    if (frame.opcode === 10) pongs.push(frame.payload.toString())
    if (frame.opcode !== 1) return
    const call = JSON.parse(frame.payload.toString()) as Call
    calls.push(call)
    if (call.method === undefined || call.id === undefined) return
    const given = call.method === 'initialize' ? { result: {} } : answer(call)
    if (given === undefined) return
    const body = 'error' in given ? { error: { code: -32600, message: given.error } } : given
    socket.write(frameOf(JSON.stringify({ id: call.id, ...body })))
  }

  server.listen(path)
  await once(server, 'listening')
  return {
    path,
    calls,
    pongs,
    called: (method: string) => calls.filter((call) => call.method === method),
    send(text: string) {
      for (const socket of sockets) socket.write(frameOf(text))
    },
    notify(method: string, params: unknown) {
      this.send(JSON.stringify({ method, params }))
    },
    write(bytes: Buffer) {
      for (const socket of sockets) socket.write(bytes)
    },
    /** The connections break; the server stays. */
    drop() {
      for (const socket of sockets) socket.destroy()
    },
    async close() {
      this.drop()
      server.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export type FakeAppServer = Awaited<ReturnType<typeof startFakeAppServer>>

/** As a server sends it: without a mask. */
export function frameOf(text: string | Buffer, opcode = 1, isFinal = true): Buffer {
  const payload = Buffer.from(text as string)
  const { length } = payload
  const size = length < 126 ? [length] : length < 65_536 ? [126, length >> 8, length & 255] : undefined
  const header = Buffer.from([(isFinal ? 0x80 : 0) | opcode, ...(size ?? [127])])
  if (size !== undefined) return Buffer.concat([header, payload])
  const long = Buffer.alloc(8)
  long.writeBigUInt64BE(BigInt(length))
  return Buffer.concat([header, long, payload])
}

/** The first frame of a client, which is always masked. */
function unmask(bytes: Buffer): { opcode: number; payload: Buffer; end: number } | undefined {
  if (bytes.length < 14 && bytes.length < 6 + ((bytes[1] ?? 0) & 0x7f)) return undefined
  const short = bytes[1]! & 0x7f
  const extra = short < 126 ? 0 : short === 126 ? 2 : 8
  const length = extra === 0 ? short : extra === 2 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2))
  const start = 2 + extra + 4
  if (bytes.length < start + length) return undefined
  const mask = bytes.subarray(start - 4, start)
  const payload = bytes.subarray(start, start + length).map((byte, n) => byte ^ mask[n & 3]!)
  return { opcode: bytes[0]! & 0x0f, payload: Buffer.from(payload), end: start + length }
}
