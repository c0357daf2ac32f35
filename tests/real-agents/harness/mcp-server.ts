import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'

/** An MCP server with one tool, `send_message`, that remembers what it was called with. */
export async function startMcpServer() {
  const messages: { to: string; body: string }[] = []
  const handle = toNodeHandler(
    createMcpHandler(() => {
      const server = new McpServer({ name: 'orc', version: '1.0.0' })
      const inputSchema = z.object({ to: z.string(), body: z.string() })
      server.registerTool(
        'send_message',
        { description: 'Sends a message', inputSchema },
        async (message) => {
          messages.push(message)
          return { content: [{ type: 'text', text: `queued for ${message.to}` }] }
        },
      )
      return server
    }),
  )
  // The handler's type forbids the undefined that node's own has.
  type Incoming = Parameters<typeof handle>[0]
  const server = createServer((incoming, outgoing) => void handle(incoming as Incoming, outgoing))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    messages,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
