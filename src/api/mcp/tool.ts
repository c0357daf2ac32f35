import type { CallToolResult, Tool } from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { CommandDefinition, CommandType } from '../../protocol/command.ts'
import { fieldsSchema } from '../../protocol/field-schema.ts'
import type { Receipt } from '../../protocol/receipt.ts'
import { escapeMarkers } from '../../protocol/response.ts'
import { ReceiptSchema } from '../contract.ts'

/** Describes a command as a tool, from the same definition as every other notation (S0.17, S1.23). */
export function toolOf(definition: CommandDefinition, looksOnly: boolean): Tool {
  const { type, summary } = definition
  // JSON Schema allows additional properties by default, so don't spend every model's tokens on it.
  const { additionalProperties: _, ...inputSchema } = fieldsSchema(definition)
  return {
    name: type,
    title: titleOf(type),
    description: `${summary}.`,
    inputSchema: inputSchema as Tool['inputSchema'],
    outputSchema: RECEIPT,
    annotations: hintsOf(type, looksOnly),
  }
}

/** Whether a command can destroy something. A new built-in command does not compile until it is listed here. */
const DESTRUCTIVE: Readonly<Record<CommandType, boolean>> = {
  send_message: false,
  mailbox_check: false,
  query_mailbox: false,
  update_status: false,
  request_action: true,
  query_state: false,
  list_agents: false,
  context_status: false,
  acknowledge: false,
  delegate: false,
  report: false,
  query: false,
  answer: false,
  request_user_input: false,
  user_response: false,
  judge: false,
  task_action: true,
}

/** Clients ask a person before they call a destructive tool. For commands that embedders add, only `looksOnly` is known. */
function hintsOf(type: string, looksOnly: boolean): NonNullable<Tool['annotations']> {
  if (!Object.hasOwn(DESTRUCTIVE, type)) return { readOnlyHint: looksOnly }
  return {
    readOnlyHint: looksOnly,
    destructiveHint: DESTRUCTIVE[type as CommandType],
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
export function toolResult(receipt: Receipt): CallToolResult {
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

function recipientLine({
  to,
  status,
  message_id,
  request_id,
  reason,
}: {
  to: string
  status: string
  message_id?: string
  request_id?: string
  reason?: string
}): string {
  if (status === 'delivered') return `Delivered to the mailbox of ${to} as ${message_id}; not read yet.`
  return `${to}: ${status}${request_id === undefined ? '' : ` as ${request_id}`}${reason === undefined ? '' : `: ${reason}`}`
}
