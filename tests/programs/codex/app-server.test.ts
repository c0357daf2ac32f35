import { createServer } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type AppServer, AppServerRefused, openAppServer } from '../../../src/programs/codex/app-server.ts'
import { type FakeAppServer, startFakeAppServer } from './fake-app-server.ts'

const silent = { notified() {}, asked() {}, unexpected() {} }

describe('the connection to an app-server', () => {
  let server: FakeAppServer
  let client: AppServer

  beforeEach(async () => {
    server = await startFakeAppServer(({ params }) => ({ result: params }))
    client = await openAppServer(server.path, silent)
  })
  afterEach(async () => {
    client.close()
    await server.close()
  })

  const echo = (text: string) => client.request('echo', { text }, z.object({ text: z.string() }))

  it.each([0, 126, 65_536, 1_000_000])('carries %i bytes both ways', async (size) => {
    const text = '€'.repeat(size / 3)
    expect(await echo(text)).toEqual({ text })
  })

  it('reports its end, and sends nothing afterwards', async () => {
    server.drop()
    expect(await client.closed).toMatch(/./)
    await expect(echo('x')).rejects.toThrow(AppServerRefused)
  })

  it('ends when the server announces a message that would fill the memory', async () => {
    server.write(Buffer.from([0x81, 127, 0, 0, 0, 0, 0x20, 0, 0, 0]))
    expect(await client.closed).toMatch(/payload size/i)
    await expect(echo('x')).rejects.toThrow(AppServerRefused)
  })

  it('ends soon after it was closed, even if the server does not answer', async () => {
    client.close()
    await expect(echo('x')).rejects.toThrow(AppServerRefused)
    expect(await client.closed).toBe('the connection was closed')
  })
})

it('is refused if nothing listens, or something that speaks another protocol', async () => {
  await expect(openAppServer('/nonexistent/s', silent)).rejects.toThrow('ENOENT')
  const server = await startFakeAppServer(() => undefined)
  const other = createServer((socket) => socket.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n'))
  await new Promise<void>((resolve) => other.listen(`${server.path}2`, resolve))
  await expect(openAppServer(`${server.path}2`, silent)).rejects.toThrow('404')
  other.close()
  await server.close()
})
