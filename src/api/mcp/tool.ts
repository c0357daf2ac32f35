import type { Tool } from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { CommandDefinition, CommandType } from '../../protocol/command.ts'
import { fieldsSchema } from '../../protocol/field-schema.ts'
import { ReceiptSchema } from '../contract.ts'

/** A command as a tool, read off the same definition as every other notation (S0.17, S1.23). */
export function toolOf(definition: CommandDefinition, looksOnly: boolean): Tool {
  const { type, summary } = definition
  // That more parameters do no harm is the default of JSON Schema and need not be told to every model.
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

/** Whether a command can take something away. A new built-in one does not compile until it is said. */
const TAKES_AWAY: Readonly<Record<CommandType, boolean>> = {
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

/** Clients ask a person before a tool that may destroy something; of an added command only its handler tells. */
function hintsOf(type: string, looksOnly: boolean): NonNullable<Tool['annotations']> {
  if (!Object.hasOwn(TAKES_AWAY, type)) return { readOnlyHint: looksOnly }
  return {
    readOnlyHint: looksOnly,
    destructiveHint: TAKES_AWAY[type as CommandType],
    // The team is all that the built-in commands reach.
    openWorldHint: false,
  }
}

/** `send_message` as people read it: Send message. */
function titleOf(type: string): string {
  const words = type.replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

const RECEIPT = receiptSchema()

/** Every kind of receipt in one object: most clients take no union at the root of a schema. */
function receiptSchema(): NonNullable<Tool['outputSchema']> {
  const kinds = ReceiptSchema.options.map((kind) => z.toJSONSchema(kind) as { properties: Properties })
  const properties: Properties = {}
  for (const kind of kinds) Object.assign(properties, kind.properties)
  return {
    type: 'object',
    properties: {
      ...properties,
      status: { type: 'string', enum: kinds.map(({ properties }) => properties.status!.const) },
      // A list of all codes with every tool would cost more than it tells.
      code: { type: 'string' },
    },
    required: ['status'],
  }
}

type Properties = Record<string, { const?: string; type?: string; enum?: unknown[] }>
