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
import type { McpEndpoint, McpExchange } from '../http/call.ts'
import { toolOf, toolResult } from './tool.ts'

/**
 * Serves MCP in every revision the library supports: each registered command is a tool. Uses the library's low-level
 * server, because Orchub already has the schemas and validates commands itself.
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
        ...(carriesInstructions(body) ? { instructions: instructionsFor(engine, principal) } : {}),
      },
    )
    const origin: CommandOrigin = {
      // Duplicate detection between MCP and an agent's text applies only to the agent itself, not to the operator.
      ...(principal.kind === 'agent' ? { channel: 'mcp' } : {}),
      // A key belongs to one command: in a batch it would make all of them duplicates.
      ...(idempotencyKey === undefined || Array.isArray(body) ? {} : { idempotencyKey }),
    }
    server.setRequestHandler('tools/list', () => {
      if (principal.kind === 'agent') onTaken(() => engine.sessions.toolsGiven(principal.agent))
      return { tools }
    })
    server.setRequestHandler('tools/call', async ({ params }) => {
      const command = { type: params.name, fields: params.arguments ?? {} }
      const receipt = await act(engine, principal, command, origin)
      if (receipt.status === 'error' && receipt.code === 'UNKNOWN_COMMAND')
        throw unknownTool(params.name, receipt)
      const handedOut = handedOutBy(command.type, receipt)
      if (handedOut.length > 0 && principal.kind === 'agent') {
        onTaken(() => confirm(principal.agent, handedOut))
      }
      return toolResult(receipt)
    })
    return server
  }

  /** The program has received the tool result and the messages in it, so they are not delivered again. */
  function confirm(agent: string, ids: readonly string[]) {
    const keys = ids.map((id) => parseId('msg', id)!)
    engine.store
      .write((tx) =>
        engine.mailboxes.moved(tx, agent, keys, 'submitted', 'taken as the answer to mailbox_check'),
      )
      .catch((error: unknown) => engine.log.error({ err: error, agent }, 'could not confirm messages'))
  }

  return async (exchange) => {
    const { request, body } = exchange
    if (await isLegacyRequest(request, body)) return await answerLegacy(createServer(exchange), request, body)
    const handler = createMcpHandler(() => createServer(exchange), { legacy: 'reject' })
    return await handler.fetch(request, { parsedBody: body })
  }
}

/** Revisions before 2026-07-28. Responds in plain JSON: there is only one response and nothing to stream. */
async function answerLegacy(server: Server, request: Request, body: unknown): Promise<Response> {
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
  await server.connect(transport)
  // No close needed: server and transport reference only each other and are collected after this response.
  return await transport.handleRequest(request, { parsedBody: body })
}

async function act(
  engine: Engine,
  principal: Principal,
  command: SaidCommand,
  origin: CommandOrigin,
): Promise<Receipt> {
  try {
    return await engine.handle(principal, command, origin)
  } catch (thrown) {
    engine.log.error({ err: thrown, command: command.type.slice(0, 100) }, 'a command failed')
    return errorReceipt(asAppError(thrown))
  }
}

function unknownTool(name: string, { hint }: { hint?: string }): ProtocolError {
  return new ProtocolError(
    ProtocolErrorCode.InvalidParams,
    `Unknown tool: ${name.slice(0, 100)}. ${hint ?? ''}`,
  )
}

/** Only the responses to these requests carry instructions; rendering a prompt for every call would be wasted work. */
function carriesInstructions(body: unknown): boolean {
  const method = (body as { method?: unknown } | null)?.method
  return method === 'initialize' || method === 'server/discover'
}

/** The library validates responses to questions for the client, which Orchub never asks; its default validator would be built for every call. */
const NO_VALIDATOR: jsonSchemaValidator = {
  getValidator: () => {
    throw new Error('Orchub never asks an MCP client questions')
  },
}

/** Instructions for the client's model: how the tools relate to commands in text, then the text of `orc prompt AGENT`. */
export function instructionsFor(engine: Engine, principal: Principal): string {
  if (principal.kind !== 'agent') return FOR_OPERATOR
  const prompt = engine.prompt(principal.agent)
  return prompt === undefined ? TOOLS : `${TOOLS}\n\n${prompt}`
}

const TOOLS =
  'The tools of this server are the commands of Orchub. Calling a tool is the same as writing the command into your ' +
  'answer: do one or the other, not both. Your token identifies you, so you need not say who you are.'

const FOR_OPERATOR =
  'The tools of this server are the commands of Orchub, the engine for a team of agents. You act as the ' +
  'operator: set "from" to act for an agent, and "agent" to choose the agent a command is about.'
