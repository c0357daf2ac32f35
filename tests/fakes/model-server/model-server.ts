/**
 * A scripted model on loopback, for real agent programs without a network: it speaks the protocols of the four
 * programs and answers by a script. The key, `sk-ant-fake-NAME`, identifies the calling agent.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { complete } from './answer.ts'
import { anthropicMessages } from './anthropic-messages.ts'
import { gemini } from './gemini.ts'
import { openaiChat } from './openai-chat.ts'
import { openaiResponses } from './openai-responses.ts'
import { type ModelReply, type ModelRequest, type Play, playerOf } from './play.ts'
import { agentOf, readBody } from './request-body.ts'
import { answerSideCall } from './side-call.ts'
import { type Json, requestOf, type WireFormat } from './wire-format.ts'

/** Programs are slow on a busy machine. */
const PATIENCE_MS = 90_000

const FORMATS: readonly WireFormat[] = [anthropicMessages, openaiResponses, openaiChat, gemini]

/** One recorded call, as tests read it. It is recorded before it is answered. */
export interface Recorded {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  /** Decompressed. */
  readonly body: string
  readonly agent: string | undefined
  readonly format: string | undefined
  /** Undefined for every request that isn't a model call: `HEAD /`, counting tokens, unknown paths. */
  readonly request: ModelRequest | undefined
  reply: ModelReply | undefined
  /** `aborted`: the program closed the connection, as it does when interrupted. */
  state: 'open' | 'answered' | 'aborted'
}

export interface ModelServer {
  readonly url: string
  readonly port: number
  readonly requests: readonly Recorded[]
  /** The model calls without side calls, of that agent or of all. */
  calls(agent?: string): Recorded[]
  /** The first matching call, past or future; rejects on timeout. */
  waitFor(fits: (call: Recorded) => boolean, timeoutMs?: number): Promise<Recorded>
  /** Replaces the script for future calls. */
  setPlay(play: Play): void
  close(): Promise<void>
}

export async function startModelServer(options: { play: Play; port?: number }): Promise<ModelServer> {
  const requests: Recorded[] = []
  const watchers = new Set<() => void>()
  let play = playerOf(options.play)
  let count = 0

  async function replyTo(request: ModelRequest): Promise<ModelReply> {
    const reply = await play(request)
    if (reply) return reply
    if (request.side) return answerSideCall(request)
    // Never the same text twice: Gemini takes repetition for a loop and opens a dialog.
    return { text: `Understood, that was number ${count}.` }
  }

  async function handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const path = (incoming.url ?? '/').split('?')[0]!
    const body = await readBody(incoming)
    const format = FORMATS.find((one) => one.route(path))
    const agent = agentOf(incoming)
    const json = parse(body)
    const isCall = format?.route(path) === 'answer' && incoming.method === 'POST' && json !== undefined
    const recorded: Recorded = {
      method: incoming.method ?? '',
      path,
      headers: incoming.headers,
      body,
      agent,
      format: format?.name,
      request: isCall ? requestOf({ model: modelIn(path), ...format.read(json) }, agent) : undefined,
      reply: undefined,
      state: 'open',
    }
    outgoing.on('close', () => {
      recorded.state = outgoing.writableFinished ? 'answered' : 'aborted'
      notify()
    })
    count += 1
    requests.push(recorded)
    notify()
    if (format?.route(path) === 'count') return send(outgoing, 200, format.count(Math.ceil(body.length / 4)))
    if (!recorded.request || !format) {
      const isProbe = path === '/' || incoming.method === 'HEAD'
      return isProbe
        ? send(outgoing, 200, {})
        : send(outgoing, 404, { error: { message: `No ${path} here` } })
    }
    recorded.reply = await replyTo(recorded.request)
    await answer(
      outgoing,
      format,
      recorded.request,
      recorded.reply,
      format.wantsStream(path, json!),
      body.length,
    )
  }

  const notify = () => {
    for (const watcher of [...watchers]) watcher()
  }

  const server = createServer((incoming, outgoing) => {
    handle(incoming, outgoing).catch((error: Error) => {
      // A script that throws is a mistake in the test: it shows in the agent's window and in the record.
      if (!outgoing.headersSent)
        send(outgoing, 500, { error: { message: `The play failed: ${error.message}` } })
      else outgoing.destroy()
    })
  })
  server.listen(options.port ?? 0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  return {
    url: `http://127.0.0.1:${port}`,
    port,
    requests,
    calls: (agent) =>
      requests.filter((one) => one.request && !one.request.side && (!agent || one.agent === agent)),
    waitFor(fits, timeoutMs = PATIENCE_MS) {
      return new Promise((resolve, reject) => {
        const look = () => {
          const found = requests.find(fits)
          if (found) done(() => resolve(found))
        }
        const done = (settle: () => void) => {
          watchers.delete(look)
          clearTimeout(timer)
          settle()
        }
        const seen = () => requests.map((one) => `${one.agent ?? '?'} ${one.method} ${one.path} ${one.state}`)
        const timer = setTimeout(
          () => done(() => reject(new Error(`No such call in ${timeoutMs} ms. Seen:\n${seen().join('\n')}`))),
          timeoutMs,
        )
        watchers.add(look)
        look()
      })
    },
    setPlay(next) {
      play = playerOf(next)
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function answer(
  outgoing: ServerResponse,
  format: WireFormat,
  request: ModelRequest,
  reply: ModelReply,
  streams: boolean,
  size: number,
): Promise<void> {
  if (reply.delayMs) await silence(outgoing, reply.delayMs)
  if (reply.error) {
    const { status, message = `Scripted error ${status}`, headers = {} } = reply.error
    return send(outgoing, status, format.error(reply.error, message), headers)
  }
  const full = complete(request, reply, size)
  if (!streams) return send(outgoing, 200, format.whole(full))
  outgoing.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  for (const { event, data, isPiece } of format.stream(full)) {
    if (outgoing.destroyed) return
    const text = typeof data === 'string' ? data : JSON.stringify(data)
    outgoing.write(`${event ? `event: ${event}\n` : ''}data: ${text}\n\n`)
    if (isPiece && reply.chunkMs) await silence(outgoing, reply.chunkMs)
  }
  outgoing.end()
}

/** Ends early if the program closes the connection. */
async function silence(outgoing: ServerResponse, ms: number): Promise<void> {
  const ended = new AbortController()
  const end = () => ended.abort()
  outgoing.once('close', end)
  await sleep(ms, undefined, { signal: ended.signal }).catch(() => {})
  outgoing.off('close', end)
}

function send(
  outgoing: ServerResponse,
  status: number,
  json: Json,
  headers: Record<string, string> = {},
): void {
  outgoing.writeHead(status, { 'content-type': 'application/json', ...headers })
  outgoing.end(JSON.stringify(json))
}

/** Gemini names the model in the path. */
const modelIn = (path: string): string => /\/models\/([^:/]+)/.exec(path)?.[1] ?? ''

function parse(body: string): Json | undefined {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}
