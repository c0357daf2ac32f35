import { z } from 'zod'
import { count, type Routes } from '../../base/route.ts'
import { AGENT_ACTIONS } from '../../protocol/command.ts'

export const TERMINAL_ROUTES = {
  terminal: {
    method: 'get',
    path: '/api/v1/agents/{agent}/terminal',
    who: 'operator',
    summary: 'The end of what an agent shows in its terminal, and the command that opens it',
    query: z.object({ lines: count(10_000).default(200) }),
    answer: z.object({
      agent: z.string(),
      session: z.string(),
      screen: z.string(),
      view: z.array(z.string()).optional().describe('A command line for a terminal of your own'),
    }),
  },
  terminalEvents: {
    method: 'get',
    path: '/api/v1/agents/{agent}/terminal/events',
    who: 'operator',
    summary: 'What an agent shows in its terminal, as it changes; the first event has every row',
    query: z.object({
      for: z
        .enum(['show', 'notice'])
        .default('show')
        .describe(
          'notice: only to learn that something changed. A take-over ends when no window shows the terminal any more, and this is none',
        ),
    }),
    answer: z.object({
      session: z.string(),
      taken_by: z.string().optional().describe('Who types into it; deliveries wait for them'),
      taken_here: z.boolean().optional().describe('Whether it was taken over with the session that asks'),
      can_take_over: z.boolean(),
      columns: z.number().describe('0 for an agent without a terminal, whose words are shown as plain rows'),
      height: z.number(),
      cursor: z.object({ x: z.number(), y: z.number() }).optional(),
      rows: z
        .array(z.tuple([z.number(), z.string()]))
        .describe('Those that changed, with their colours (SGR)'),
    }),
    type: 'text/event-stream',
  },
  takeTerminal: {
    method: 'post',
    path: '/api/v1/agents/{agent}/terminal/take-over',
    who: 'operator',
    summary: 'Take over a terminal to type into it; deliveries to the agent wait',
    body: z.object({}),
    answer: z.object({ status: z.literal('taken'), by: z.string() }),
  },
  releaseTerminal: {
    method: 'delete',
    path: '/api/v1/agents/{agent}/terminal/take-over',
    who: 'operator',
    summary: 'Let go of a terminal; deliveries go on',
    answer: z.object({ status: z.literal('free') }),
  },
  typeKeys: {
    method: 'post',
    path: '/api/v1/agents/{agent}/terminal/keys',
    who: 'operator',
    summary: 'Type into a terminal that the caller has taken over',
    body: z.object({
      keys: z.string().min(1).max(50_000).describe('As a terminal sends them'),
      paste: z.boolean().optional().describe('As one piece of text, in which nothing is a key'),
    }),
    answer: z.object({ status: z.literal('typed') }),
  },
  agentActions: {
    method: 'get',
    path: '/api/v1/agents/{agent}/actions',
    who: 'operator',
    summary: 'What can be done with an agent as it stands, and why the rest cannot',
    answer: z.object({
      agent: z.string(),
      actions: z.array(
        z.object({
          action: z.enum([...AGENT_ACTIONS, 'interrupt']),
          possible: z.boolean(),
          reason: z.string().optional().describe('Why not'),
          hint: z.string().optional(),
        }),
      ),
    }),
  },
  interrupt: {
    method: 'post',
    path: '/api/v1/agents/{agent}/interrupt',
    who: 'operator',
    summary: "End an agent's turn by its program's own means; what it was given stays given",
    body: z.object({}),
    answer: z.object({ stopped: z.boolean().describe('It truly ended'), evidence: z.string() }),
  },
  transcript: {
    method: 'get',
    path: '/api/v1/agents/{agent}/transcript',
    who: 'operator',
    summary: 'The last that an agent said by itself, since the service found or started it; oldest first',
    answer: z.object({
      agent: z.string(),
      said: z.array(z.object({ at: z.string(), text: z.string() })),
    }),
  },
} as const satisfies Routes
