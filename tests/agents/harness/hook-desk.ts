/** The service's side of hooks and MCP, as far as a program meets it: one agent, known by its token. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { Session } from '../../../src/runtimes/runtime.ts'

export interface Noted {
  readonly event: Record<string, unknown>
  readonly authorization: string | undefined
  answer?: unknown
}

export async function openHookDesk() {
  const hooks: Noted[] = []
  const messages: { to: string; authorization: string | undefined }[] = []
  let session: Session | undefined

  async function hook(incoming: IncomingMessage, outgoing: ServerResponse) {
    let body = ''
    for await (const chunk of incoming) body += chunk
    const gone = new AbortController()
    outgoing.on('close', () => {
      if (!outgoing.writableFinished) gone.abort()
    })
    const noted: Noted = { event: JSON.parse(body), authorization: incoming.headers.authorization }
    hooks.push(noted)
    noted.answer = (await session?.hook?.(noted.event, gone.signal)) ?? {}
    outgoing.setHeader('content-type', 'application/json').end(JSON.stringify(noted.answer))
  }

  const mcp = (authorization: string | undefined) =>
    toNodeHandler(
      createMcpHandler(() => {
        const server = new McpServer({ name: 'orc', version: '1.0.0' })
        const inputSchema = z.object({ to: z.string() })
        server.registerTool(
          'send_message',
          { description: 'Sends a message', inputSchema },
          async ({ to }) => {
            messages.push({ to, authorization })
            return { content: [{ type: 'text', text: `queued for ${to}` }] }
          },
        )
        return server
      }),
    )

  const server = createServer((incoming, outgoing) => {
    if (incoming.url === '/hooks') return void hook(incoming, outgoing)
    const handle = mcp(incoming.headers.authorization)
    void handle(incoming as Parameters<typeof handle>[0], outgoing)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hooks,
    messages,
    /** From now on hooks reach this session; undefined: the service is away, as far as they can tell. */
    attend(next: Session | undefined) {
      session = next
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

export type HookDesk = Awaited<ReturnType<typeof openHookDesk>>
