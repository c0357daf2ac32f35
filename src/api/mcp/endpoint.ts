import {
  createMcpHandler,
  isLegacyRequest,
  type jsonSchemaValidator,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import type { Principal } from '../../base/agent.ts'
import { asAppError } from '../../base/errors.ts'
import { parseId } from '../../base/ids.ts'
import type { CommandOrigin } from '../../commands/commands.ts'
import { handedOutBy } from '../../delivery/listener.ts'
import type { Engine } from '../../engine.ts'
import type { SaidCommand } from '../../protocol/command.ts'
import { errorReceipt, type Receipt } from '../../protocol/receipt.ts'
import type { McpEndpoint, McpExchange } from '../mcp-endpoint.ts'
import { instructionsFor } from './instructions.ts'
import { toolResult } from './result.ts'
import { toolOf } from './tool.ts'

/**
 * MCP over Orchub, in every revision that the library knows: each command of the registry is a tool. The
 * library's lower layer is used because schemas and their check are there already, and cost nothing for each request.
 */
export function createMcpEndpoint(engine: Engine, version: string): McpEndpoint {
  const tools = engine.registry
    .all()
    .map((definition) => toolOf(definition, engine.looksOnly(definition.type)))

  function createServer({ principal, body, idempotencyKey, onTaken }: McpExchange): Server {
    const server = new Server(
      { name: 'orchub', title: 'Orchub', version },
      {
        capabilities: { tools: {} },
        jsonSchemaValidator: NO_VALIDATOR,
        ...(isGreeting(body) ? { instructions: instructionsFor(engine, principal) } : {}),
      },
    )
    const circumstances: CommandOrigin = {
      // What the operator says in an agent's name is not what the agent itself says in its text.
      ...(principal.kind === 'agent' ? { channel: 'mcp' } : {}),
      // A key is for one command: in a batch it would make them all the same.
      ...(idempotencyKey === undefined || Array.isArray(body) ? {} : { idempotencyKey }),
    }
    server.setRequestHandler('tools/list', () => {
      if (principal.kind === 'agent') onTaken(() => engine.sessions.toolsGiven(principal.agent))
      return { tools }
    })
    server.setRequestHandler('tools/call', async ({ params }) => {
      const said = { type: params.name, fields: params.arguments ?? {} }
      const receipt = await act(engine, principal, said, circumstances)
      if (receipt.status === 'error' && receipt.code === 'UNKNOWN_COMMAND')
        throw unknownTool(params.name, receipt)
      const handedOut = handedOutBy(said.type, receipt)
      if (handedOut.length > 0 && principal.kind === 'agent') {
        onTaken(() => confirm(principal.agent, handedOut))
      }
      return toolResult(receipt)
    })
    return server
  }

  /** The answer to a call is the program's own to take: its mail has arrived with it, and does not come again. */
  function confirm(agent: string, ids: readonly string[]) {
    const keys = ids.map((id) => parseId('msg', id)!)
    engine.store
      .write((tx) =>
        engine.mailboxes.moved(tx, agent, keys, 'submitted', 'taken as the answer to mailbox_check'),
      )
      .catch((error: unknown) => engine.log.error({ err: error, agent }, 'mail could not be confirmed'))
  }

  return async (exchange) => {
    const { request, body } = exchange
    if (await isLegacyRequest(request, body)) return await answerLegacy(createServer(exchange), request, body)
    const handler = createMcpHandler(() => createServer(exchange), { legacy: 'reject' })
    return await handler.fetch(request, { parsedBody: body })
  }
}

/** The revisions before 2026-07-28, answered in plain JSON: there is never more than the one answer to stream. */
async function answerLegacy(server: Server, request: Request, body: unknown): Promise<Response> {
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
  await server.connect(transport)
  // Neither is closed: they hold nothing but each other, and are gone with this answer.
  return await transport.handleRequest(request, { parsedBody: body })
}

async function act(
  engine: Engine,
  principal: Principal,
  said: SaidCommand,
  circumstances: CommandOrigin,
): Promise<Receipt> {
  try {
    return await engine.handle(principal, said, circumstances)
  } catch (thrown) {
    engine.log.error({ err: thrown, command: said.type.slice(0, 100) }, 'a command failed')
    return errorReceipt(asAppError(thrown))
  }
}

function unknownTool(name: string, { hint }: { hint?: string }): ProtocolError {
  return new ProtocolError(
    ProtocolErrorCode.InvalidParams,
    `Unknown tool: ${name.slice(0, 100)}. ${hint ?? ''}`,
  )
}

/** The messages whose answer tells the instructions: rendering a prompt for every call would be in vain. */
function isGreeting(body: unknown): boolean {
  const method = (body as { method?: unknown } | null)?.method
  return method === 'initialize' || method === 'server/discover'
}

/** Used by the library for questions to the client, which are never asked; its own would be built for every call. */
const NO_VALIDATOR: jsonSchemaValidator = {
  getValidator: () => {
    throw new Error('nothing is asked of an MCP client')
  },
}
