/** The service's side of hooks and MCP, as far as a program meets it: one agent, known by its token, and one tool. */
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

export async function startHookServer() {
  const hooks: Noted[] = []
  const messages: { to: string; body: string | undefined; authorization: string | undefined }[] = []
  const tokens = new Set<string | undefined>()
  let session: Session | undefined

  async function hook(incoming: IncomingMessage, outgoing: ServerResponse) {
    const event = (await jsonOf(incoming)) as Record<string, unknown>
    const gone = new AbortController()
    outgoing.on('close', () => {
      if (!outgoing.writableFinished) gone.abort()
    })
    const noted: Noted = { event, authorization: incoming.headers.authorization }
    hooks.push(noted)
    noted.answer = (await session?.hook?.(noted.event, gone.signal)) ?? {}
    outgoing.setHeader('content-type', 'application/json').end(JSON.stringify(noted.answer))
  }

  const mcp = (authorization: string | undefined) =>
    toNodeHandler(
      createMcpHandler(() => {
        const server = new McpServer({ name: 'orc', version: '1.0.0' })
        const inputSchema = z.object({ to: z.string(), body: z.string().optional() })
        server.registerTool(
          'send_message',
          { description: 'Sends a message', inputSchema },
          async ({ to, body }) => {
            messages.push({ to, body, authorization })
            return { content: [{ type: 'text', text: `queued for ${to}` }] }
          },
        )
        return server
      }),
    )

  async function call(incoming: IncomingMessage, outgoing: ServerResponse) {
    const body = await jsonOf(incoming)
    const isListing = (body as { method?: string } | undefined)?.method === 'tools/list'
    if (isListing) outgoing.on('finish', () => session?.onToolsListed?.())
    const handle = mcp(incoming.headers.authorization)
    await handle(incoming as Parameters<typeof handle>[0], outgoing, body)
  }

  const server = createServer((incoming, outgoing) => {
    tokens.add(incoming.headers.authorization)
    void (incoming.url === '/hooks' ? hook(incoming, outgoing) : call(incoming, outgoing))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hooks,
    messages,
    /** The tokens of all requests. */
    tokens,
    /** Hooks reach this session from now on; undefined: the service is down. */
    attach(next: Session | undefined) {
      session = next
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function jsonOf(incoming: IncomingMessage): Promise<unknown> {
  let body = ''
  for await (const chunk of incoming) body += chunk
  return body === '' ? undefined : JSON.parse(body)
}

export type HookServer = Awaited<ReturnType<typeof startHookServer>>
