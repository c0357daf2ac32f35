import {
  type CallToolResult,
  createMcpHandler,
  isLegacyRequest,
  type jsonSchemaValidator,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type Tool,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { Principal } from '../base/agent.ts'
import { asAppError } from '../base/errors.ts'
import { parseId } from '../base/ids.ts'
import type { CommandOrigin } from '../commands/commands.ts'
import { handedOutBy } from '../delivery/listener.ts'
import type { Engine } from '../engine.ts'
import type { CommandDefinition, RawCommand } from '../protocol/command.ts'
import { fieldsSchema } from '../protocol/field-schema.ts'
import { errorReceipt, type Receipt, type RecipientReceipt } from '../protocol/receipt.ts'
import { isBuiltIn, unknownCommand } from '../protocol/registry.ts'
import { escapeMarkers } from '../protocol/response.ts'
import { ReceiptSchema } from './contract.ts'
import type { McpEndpoint, McpExchange } from './handle-request.ts'

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
      // A model must not reach a command by guessing a name that it is not offered.
      const isOffered = engine.registry.find(params.name.trim())?.audience === undefined
      const receipt = isOffered
        ? await act(engine, principal, command, origin)
        : errorReceipt(unknownCommand(params.name, engine.registry.all()))
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
  command: RawCommand,
  origin: CommandOrigin,
): Promise<Receipt> {
  try {
    return await engine.handle(principal, command, origin)
  } catch (thrown) {
    engine.log.error({ err: thrown, command: command.type.slice(0, 100) }, 'a command failed')
    return errorReceipt(asAppError(thrown))
  }
}

function unknownTool(name: string, { hint }: { hint?: string | undefined }): ProtocolError {
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

/** Instructions for the client's model: how the tools relate to commands in text, then the text of `orc agent prompt AGENT`. */
function instructionsFor(engine: Engine, principal: Principal): string {
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

/** Describes a command as a tool, from the same definition as every other notation (S0.17, S1.23). */
function toolOf(definition: CommandDefinition, looksOnly: boolean): Tool {
  const { type, summary } = definition
  // JSON Schema allows additional properties by default, so don't spend every model's tokens on it.
  const { additionalProperties: _, ...inputSchema } = fieldsSchema(definition)
  return {
    name: type,
    title: titleOf(type),
    description: `${summary}.`,
    inputSchema: inputSchema as Tool['inputSchema'],
    outputSchema: RECEIPT,
    annotations: hintsOf(definition, looksOnly),
  }
}

/** Clients ask a person before they call a destructive tool. Of commands that embedders add, only `looksOnly` is known. */
function hintsOf(definition: CommandDefinition, looksOnly: boolean): NonNullable<Tool['annotations']> {
  if (!isBuiltIn(definition)) return { readOnlyHint: looksOnly }
  return {
    readOnlyHint: looksOnly,
    destructiveHint: definition.destructive === true,
    // Built-in commands reach the team only.
    openWorldHint: false,
  }
}

/** Turns `send_message` into `Send message`. */
function titleOf(type: string): string {
  const words = type.replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

const RECEIPT = receiptSchema()

/** Combines every kind of receipt into one object: most clients accept no union at the root of a schema. */
function receiptSchema(): NonNullable<Tool['outputSchema']> {
  const kinds = ReceiptSchema.options.map((kind) => z.toJSONSchema(kind) as { properties: Properties })
  const properties: Properties = {}
  for (const kind of kinds) Object.assign(properties, kind.properties)
  return {
    type: 'object',
    properties: {
      ...properties,
      status: { type: 'string', enum: kinds.map(({ properties }) => properties.status!.const) },
      // Listing all codes in every tool would cost too many tokens.
      code: { type: 'string' },
    },
    required: ['status'],
  }
}

type Properties = Record<string, { const?: string; type?: string; enum?: unknown[] }>

/**
 * Converts a receipt to a tool result: complete as structured content, and as text for clients that show only text.
 * A model may repeat either in its answer, which Orchub scans for commands, so text from other agents is escaped and
 * cannot become a command (C17).
 */
function toolResult(receipt: Receipt): CallToolResult {
  const safe = escapeStrings(receipt)
  return {
    content: [{ type: 'text', text: textOf(safe) }],
    structuredContent: { ...safe },
    // Held is not an error: the command may still run.
    ...(safe.status === 'error' || safe.status === 'blocked' ? { isError: true } : {}),
  }
}

function escapeStrings(receipt: Receipt): Receipt {
  return JSON.parse(JSON.stringify(receipt), (_, value) =>
    typeof value === 'string' ? escapeMarkers(value) : value,
  ) as Receipt
}

function textOf(receipt: Receipt): string {
  const text = sentencesOf(receipt)
  return receipt.ignored === undefined ? text : `${text}\nIgnored: ${receipt.ignored.join(', ')}`
}

function sentencesOf(receipt: Receipt): string {
  switch (receipt.status) {
    case 'delivered':
      return (receipt.recipients ?? [{ ...receipt, status: 'delivered' as const }])
        .map(recipientLine)
        .join('\n')
    case 'ok': {
      const { result, details } = receipt
      return details === undefined ? result : `${result}\n${JSON.stringify(details, null, 2)}`
    }
    case 'blocked':
      return `Blocked: ${receipt.reason}. A rule forbids this. Do not try again; tell the agent or person who gave you the task.`
    case 'held':
      return `Held as ${receipt.request_id}: ${receipt.reason}. A person was asked to decide. Continue with other work; the verdict arrives as a message.`
    case 'error':
      return `${receipt.code}: ${receipt.message}${receipt.hint === undefined ? '' : `\n${receipt.hint}`}`
  }
}

function recipientLine({ to, status, message_id, request_id, reason }: RecipientReceipt): string {
  if (status === 'delivered') return `Delivered to the mailbox of ${to} as ${message_id}; not read yet.`
  return `${to}: ${status}${request_id === undefined ? '' : ` as ${request_id}`}${reason === undefined ? '' : `: ${reason}`}`
}
