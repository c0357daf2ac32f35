import { createServer } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openUnixWebSocket, type UnixWebSocket } from '../../../src/programs/codex/app-server.ts'
import { type FakeAppServer, frameOf, startFakeAppServer } from './fake-app-server.ts'

describe('a WebSocket over a unix socket', () => {
  let server: FakeAppServer
  let socket: UnixWebSocket
  let heard: string[]

  beforeEach(async () => {
    server = await startFakeAppServer(() => ({ result: 'yes' }))
    heard = []
    socket = await openUnixWebSocket(server.path, (text) => void heard.push(text))
  })
  afterEach(async () => {
    socket.close()
    await server.close()
  })

  async function until(isSo: () => boolean) {
    for (let n = 0; n < 200 && !isSo(); n++) await new Promise((resolve) => setTimeout(resolve, 10))
    expect(isSo()).toBe(true)
  }

  it.each([0, 125, 126, 65_535, 65_536, 1_000_000])('carries %i bytes both ways', async (size) => {
    const text = '€'.repeat(size / 3) + 'x'.repeat(size % 3)
    socket.send(JSON.stringify({ id: 1, method: 'echo', params: { text } }))
    await until(() => server.calls.length === 1)
    expect(server.calls[0]!.params).toEqual({ text })
    server.send(text)
    await until(() => heard.length === 2)
    expect(heard[1]).toBe(text)
  })

  it('joins the pieces of a message across chunks, and answers a ping between them', async () => {
    const bytes = Buffer.concat([
      frameOf(Buffer.from('häl').subarray(0, 2), 1, false),
      frameOf('still there?', 9),
      frameOf(Buffer.from('häl').subarray(2), 0, false),
      frameOf('lo', 0),
    ])
    for (const byte of bytes) server.write(Buffer.from([byte]))
    await until(() => heard.length === 1)
    expect(heard).toEqual(['hällo'])
    await until(() => server.pongs.length === 1)
    expect(server.pongs).toEqual(['still there?'])
  })

  it('reports its end, and sends nothing afterwards', async () => {
    server.drop()
    expect(await socket.closed).toMatch(/./)
    expect(socket.send('{}')).toBe(false)
  })

  it('ends when the server announces a message that would fill the memory', async () => {
    const header = Buffer.from([0x81, 127, 0, 0, 0, 0, 0x20, 0, 0, 0])
    server.write(header)
    expect(await socket.closed).toMatch(/payload size/i)
    expect(heard).toEqual([])
    expect(socket.send('{}')).toBe(false)
  })

  it('ends soon after it was closed, even if the server does not answer', async () => {
    socket.close()
    expect(socket.send('{}')).toBe(false)
    expect(await socket.closed).toBe('the connection was closed')
  })

  it('ends when the server closes it', async () => {
    server.write(frameOf('', 8))
    expect(await socket.closed).toBe('the connection was closed')
  })
})

it('is refused if nothing listens, or something that speaks another protocol', async () => {
  await expect(openUnixWebSocket('/nonexistent/s', () => {})).rejects.toThrow('ENOENT')
  const server = await startFakeAppServer(() => undefined)
  const other = createServer((socket) => socket.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n'))
  await new Promise<void>((resolve) => other.listen(`${server.path}2`, resolve))
  await expect(openUnixWebSocket(`${server.path}2`, () => {})).rejects.toThrow('404')
  other.close()
  await server.close()
})
