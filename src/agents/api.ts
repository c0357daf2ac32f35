import { z } from 'zod'
import { count, type Routes } from '../base/route.ts'
import { AGENT_ACTIONS, defineCommand, routeOf } from '../protocol/command.ts'

export const AgentSchema = z.object({
  name: z.string(),
  parent: z.string().optional(),
  role: z.string().optional(),
  status: z.string().describe('The status it reported, otherwise the state of its session'),
  session: z.string(),
  waits_for: z.string().optional().describe('Why it receives no messages although it is idle'),
  current_task: z.string().optional(),
  paused: z.boolean(),
  runtime: z.string().describe('What runs the agent; none for a program that only uses its token'),
  program: z.string().optional(),
  context: z
    .object({
      model: z.string().optional(),
      tokens: z.number().optional(),
      window: z.number().optional(),
      percent: z.number().optional(),
      level: z.enum(['ok', 'warning', 'critical', 'unknown']),
      lines: z.number().optional(),
      bytes: z.number().optional(),
    })
    .optional()
    .describe("How full its context window is, according to its program's own records"),
  spent: z.number().optional().describe('In the currency of the prices in orc.yaml'),
  updated_at: z.string(),
})

const agent = z.string().describe('The name of the agent')

export const takeTerminal = defineCommand({
  type: 'take_terminal',
  audience: 'people',
  summary: 'Take over a terminal to type into it; deliveries to the agent wait',
  fields: z.object({ agent }),
  example: 'orc open',
  details: z.object({ status: z.literal('taken'), by: z.string() }),
})

export const releaseTerminal = defineCommand({
  type: 'release_terminal',
  audience: 'people',
  summary: 'Release a terminal; deliveries continue',
  fields: z.object({ agent }),
  example: 'orc open',
  details: z.object({ status: z.literal('free') }),
})

export const typeKeys = defineCommand({
  type: 'type_keys',
  audience: 'people',
  summary: 'Type into a terminal that the caller has taken over',
  fields: z.object({
    agent,
    keys: z.string().min(1).max(50_000).describe('Key sequences as a terminal sends them'),
    paste: z.boolean().optional().describe('Paste as text: no character acts as a key'),
  }),
  example: 'orc open',
  details: z.object({ status: z.literal('typed') }),
})

export const interruptAgent = defineCommand({
  type: 'interrupt_agent',
  audience: 'people',
  summary: "Interrupt an agent's turn with its program's own mechanism; delivered messages stay delivered",
  fields: z.object({ agent }),
  example: 'orc open',
  details: z.object({ stopped: z.boolean().describe('Whether the turn has ended'), evidence: z.string() }),
})

export const createToken = defineCommand({
  type: 'create_token',
  audience: 'people',
  summary:
    "Create a token for an agent; the response is the only time it is shown. Tokens for people need the operator's own token",
  fields: z.object({ agent: z.string().describe('An agent, a person listed in orc.yaml, or operator') }),
  example: 'orc token create Worker',
  details: z.object({ id: z.string(), agent: z.string(), token: z.string() }),
})

export const revokeTokens = defineCommand({
  type: 'revoke_tokens',
  audience: 'people',
  summary: 'Revoke a token by id, or all tokens of an agent or person, with immediate effect',
  fields: z.object({ which: z.string().describe('The id of a token, or the name of an agent or person') }),
  example: 'orc token revoke Worker',
  details: z.object({ revoked: z.number() }),
})

export const AGENT_ROUTES = {
  agents: {
    method: 'get',
    path: '/api/v1/agents',
    who: 'token',
    summary: 'List the agents and their status',
    answer: z.object({ agents: z.array(AgentSchema) }),
  },
} as const satisfies Routes

export const TERMINAL_ROUTES = {
  terminal: {
    method: 'get',
    path: '/api/v1/agents/{agent}/terminal',
    who: 'operator',
    summary: "The last lines of an agent's terminal, and the command that opens it",
    query: z.object({ lines: count(10_000).default(200) }),
    answer: z.object({
      agent: z.string(),
      session: z.string(),
      screen: z.string(),
      view: z.array(z.string()).optional().describe('A command that opens the session in your own terminal'),
    }),
  },
  terminalEvents: {
    method: 'get',
    path: '/api/v1/agents/{agent}/terminal/events',
    who: 'operator',
    summary: "Stream an agent's terminal as it changes; the first event holds every row",
    query: z.object({
      for: z
        .enum(['show', 'notice'])
        .default('show')
        .describe(
          'notice: only learn that something changed. A take-over ends when no window shows the terminal, and a notice stream does not count as one',
        ),
    }),
    answer: z.object({
      session: z.string(),
      taken_by: z.string().optional().describe('The person who has taken it over; deliveries wait'),
      taken_here: z.boolean().optional().describe('Whether the session of this request has taken it over'),
      can_take_over: z.boolean(),
      columns: z.number().describe('0 for an agent without a terminal, whose output is shown as plain rows'),
      height: z.number(),
      cursor: z.object({ x: z.number(), y: z.number() }).optional(),
      rows: z.array(z.tuple([z.number(), z.string()])).describe('The rows that changed, with colours (SGR)'),
    }),
    type: 'text/event-stream',
  },
  takeTerminal: {
    method: 'post',
    path: '/api/v1/agents/{agent}/terminal/take-over',
    who: 'operator',
    ...routeOf(takeTerminal),
    body: z.object({}),
  },
  releaseTerminal: {
    method: 'delete',
    path: '/api/v1/agents/{agent}/terminal/take-over',
    who: 'operator',
    command: releaseTerminal.type,
    summary: releaseTerminal.summary,
    answer: releaseTerminal.details,
  },
  typeKeys: {
    method: 'post',
    path: '/api/v1/agents/{agent}/terminal/keys',
    who: 'operator',
    ...routeOf(typeKeys),
    body: typeKeys.fields.omit({ agent: true }),
  },
  agentActions: {
    method: 'get',
    path: '/api/v1/agents/{agent}/actions',
    who: 'operator',
    summary: 'Which actions are possible on an agent now, and why the others are not',
    answer: z.object({
      agent: z.string(),
      actions: z.array(
        z.object({
          action: z.enum([...AGENT_ACTIONS, 'interrupt']),
          possible: z.boolean(),
          reason: z.string().optional().describe('Why the action is not possible'),
          hint: z.string().optional(),
        }),
      ),
    }),
  },
  interrupt: {
    method: 'post',
    path: '/api/v1/agents/{agent}/interrupt',
    who: 'operator',
    ...routeOf(interruptAgent),
    body: z.object({}),
  },
  transcript: {
    method: 'get',
    path: '/api/v1/agents/{agent}/transcript',
    who: 'operator',
    summary: 'Recent output of an agent since the service found or started it, oldest first',
    answer: z.object({
      agent: z.string(),
      said: z.array(z.object({ at: z.string(), text: z.string() })),
    }),
  },
} as const satisfies Routes

export const TOKEN_ROUTES = {
  tokens: {
    method: 'get',
    path: '/api/v1/tokens',
    who: 'operator',
    summary: 'List the valid tokens by id, never the tokens themselves',
    answer: z.object({
      tokens: z.array(
        z.object({
          id: z.string(),
          agent: z.string().describe('The holder: the name of an agent or a person, or operator'),
          kind: z.enum(['agent', 'person', 'operator']),
          created_at: z.string(),
          expires_at: z.string().optional().describe('Browser sessions only'),
        }),
      ),
    }),
  },
  mintToken: { method: 'post', path: '/api/v1/tokens', who: 'operator', ...routeOf(createToken) },
  revokeTokens: {
    method: 'delete',
    path: '/api/v1/tokens/{which}',
    who: 'operator',
    command: revokeTokens.type,
    summary: revokeTokens.summary,
    answer: revokeTokens.details,
  },
} as const satisfies Routes
