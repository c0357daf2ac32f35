import { PassThrough } from 'node:stream'
import type { AnyMessage } from '@agentclientprotocol/sdk'
import { describe, expect, it } from 'vitest'
import { openMessageStream } from '../../../src/runtimes/acp/message-stream.ts'

function open(hold: () => Promise<void> | undefined = () => undefined) {
  const stdin = new PassThrough()
  const stdout = new PassThrough()
  const updates: unknown[] = []
  const garbage: string[] = []
  const stream = openMessageStream({
    stdin,
    stdout,
    lineBytes: 200,
    onUpdate: (params) => updates.push(params),
    onWritten: () => {},
    onGarbage: (what) => garbage.push(what),
    hold,
  })
  const send = (...messages: unknown[]) => {
    for (const message of messages) stdout.write(`${JSON.stringify(message)}\n`)
  }
  return { stdin, stdout, stream, updates, garbage, send, reader: stream.readable.getReader() }
}

const update = (n: number) => ({ jsonrpc: '2.0', method: 'session/update', params: n })
const request = (id: number) => ({ jsonrpc: '2.0', id, method: 'x' })

describe('the stream between an ACP agent and us', () => {
  it('passes updates in order, before later messages', async () => {
    const { send, reader, updates } = open()
    send(update(1), update(2), request(7), update(3))
    expect((await reader.read()).value).toMatchObject({ id: 7 })
    expect(updates).toEqual([1, 2])
  })

  it('passes only responses to open requests, once', async () => {
    const { send, reader, stream, garbage } = open()
    const writer = stream.writable.getWriter()
    await writer.write({ jsonrpc: '2.0', id: 1, method: 'initialize' } as AnyMessage)
    const answer = { jsonrpc: '2.0', id: 1, result: {} }
    send({ ...answer, id: 2 }, answer, answer, request(9))
    expect((await reader.read()).value).toEqual(answer)
    expect((await reader.read()).value).toMatchObject({ id: 9 })
    expect(garbage).toHaveLength(2)
  })

  it('reads nothing more while it is held', async () => {
    const gate = Promise.withResolvers<void>()
    const { send, reader, updates } = open(() => gate.promise)
    send(update(1), request(7))
    const reading = reader.read()
    await new Promise((resolve) => setTimeout(resolve, 30))
    expect(updates).toEqual([])
    gate.resolve()
    await reading
    expect(updates).toEqual([1])
  })

  it('breaks when the agent sends a thousand requests without reading a response', async () => {
    const { send, reader } = open()
    send(...Array.from({ length: 1001 }, (_, id) => request(id)))
    const readAll = async () => {
      for (;;) await reader.read()
    }
    await expect(readAll()).rejects.toThrow('without reading the responses')
  })

  it('skips input that is not a message', async () => {
    const { send, stdout, reader, garbage } = open()
    for (const line of ['', '  ', 'text', '{', '[]', '1', 'null', '{}', '{"jsonrpc":"2.0"}'])
      stdout.write(`${line}\n`)
    send(
      { ...request(1), jsonrpc: '1.0' },
      { ...request(1), id: {} },
      { ...request(1), method: 3 },
      request(4),
    )
    expect((await reader.read()).value).toMatchObject({ id: 4 })
    expect(garbage).toHaveLength(10)
  })
})
