/** An app-server on a unix socket with scripted answers, for cases that the real one cannot be made to produce. */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WebSocketServer } from 'ws'

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
  const calls: Call[] = []
  const connections = new Set<Socket>()
  const http = createServer()
  http.on('connection', (socket) => {
    connections.add(socket)
    socket.on('close', () => connections.delete(socket))
  })
  const server = new WebSocketServer({ server: http })
  server.on('connection', (socket) => {
    socket.on('error', () => {})
    socket.on('message', (data) => {
      const call = JSON.parse(String(data)) as Call
      calls.push(call)
      if (call.method === undefined || call.id === undefined) return
      const given = call.method === 'initialize' ? { result: {} } : answer(call)
      if (given === undefined) return
      const body = 'error' in given ? { error: { code: -32600, message: given.error } } : given
      socket.send(JSON.stringify({ id: call.id, ...body }))
    })
  })
  http.listen(path)
  await once(http, 'listening')
  return {
    path,
    calls,
    called: (method: string) => calls.filter((call) => call.method === method),
    send(text: string) {
      for (const socket of server.clients) socket.send(text)
    },
    notify(method: string, params: unknown) {
      this.send(JSON.stringify({ method, params }))
    },
    /** Writes raw bytes to every connection. */
    write(bytes: Buffer) {
      for (const socket of connections) socket.write(bytes)
    },
    /** The connections break; the server stays. */
    drop() {
      for (const socket of connections) socket.destroy()
    },
    async close() {
      this.drop()
      http.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export type FakeAppServer = Awaited<ReturnType<typeof startFakeAppServer>>
