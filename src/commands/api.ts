import { z } from 'zod'
import type { Routes } from '../base/route.ts'
import { ReceiptSchema } from '../protocol/receipt.ts'

const CommandBody = z
  .object({
    type: z.string().describe('The command type, such as send_message; GET /api/v1/commands lists them'),
  })
  .loose()

const JsonRpcMessage = z.object({ jsonrpc: z.literal('2.0') }).loose()

/** Limit for the commands in one request. */
export const MAX_COMMANDS = 1000

export const COMMAND_ROUTES = {
  command: {
    method: 'post',
    path: '/api/v1/commands',
    who: 'token',
    summary: 'Run one command, an array of commands, or the commands found in text/plain',
    body: z.union([CommandBody, z.array(CommandBody).max(MAX_COMMANDS)]),
    limit: 'own',
    answer: z.union([ReceiptSchema, z.array(ReceiptSchema)]),
  },
  commandTypes: {
    method: 'get',
    path: '/api/v1/commands',
    who: 'token',
    summary: 'List the command types with their parameters',
    answer: z.object({
      commands: z.array(
        z.object({
          type: z.string(),
          summary: z.string(),
          example: z.string(),
          body: z.string().optional().describe('The parameter that the body of the XML notation sets'),
          schema: z.record(z.string(), z.unknown()).describe('JSON Schema of the parameters'),
        }),
      ),
    }),
  },
} as const satisfies Routes

export const MCP_ROUTES = {
  mcp: {
    method: 'post',
    path: '/mcp',
    who: 'token',
    summary: 'The Model Context Protocol (streamable HTTP, without sessions): every command is a tool',
    body: z.union([JsonRpcMessage, z.array(JsonRpcMessage)]),
    limit: 'own',
    answer: z.union([JsonRpcMessage, z.array(JsonRpcMessage)]),
  },
} as const satisfies Routes

export const HOOK_ROUTES = {
  hook: {
    method: 'post',
    path: '/hooks',
    who: 'token',
    summary:
      "Receive a hook from an agent's program; responds once there is an answer, however long a person takes",
    body: z.unknown().describe("The program's own hook input, such as Claude Code's or Codex's"),
    limit: 16 * 1024 * 1024,
    answer: z.unknown().describe("What the program should do, in the program's own format; {} for nothing"),
  },
} as const satisfies Routes
