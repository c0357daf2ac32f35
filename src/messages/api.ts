import { z } from 'zod'
import { count, type Routes, time, wait } from '../base/route.ts'
import { DELIVERY_STATES, PRIORITIES, TASK_MESSAGE_KINDS } from './message.ts'

export const MailSchema = z.object({
  id: z.string(),
  from: z.string(),
  to: z.string(),
  title: z.string(),
  content: z.string(),
  priority: z.enum(PRIORITIES),
  at: z.string(),
  delivery: z.enum(DELIVERY_STATES).describe('How far the message has truly come'),
  attempts: z.number(),
  correlation_id: z.string(),
  in_reply_to: z.string().optional(),
  task_id: z.string().optional().describe('The task it is about'),
  kind: z.enum(TASK_MESSAGE_KINDS).optional().describe('What it is to that task'),
})

export const DeliveryCountSchema = z.object({
  agent: z.string(),
  state: z.enum(DELIVERY_STATES),
  count: z.number(),
})

const filter = z.enum(['unread', 'all', 'urgent'])

export const MESSAGE_ROUTES = {
  messages: {
    method: 'get',
    path: '/api/v1/messages',
    who: 'token',
    summary: 'The newest messages that the caller may see, oldest first',
    query: z.object({
      agent: z.string().optional().describe('Only messages that it sent or received'),
      with: z.string().optional().describe('Only messages that this one sent or received as well'),
      thread: z.string().optional().describe('Only messages of one exchange, by its `correlation_id`'),
      before: z.string().optional().describe('Only messages older than this id: the page before'),
      since: time.optional(),
      limit: count(1000).default(200),
    }),
    answer: z.object({ messages: z.array(MailSchema) }),
  },
  message: {
    method: 'get',
    path: '/api/v1/messages/{id}',
    who: 'token',
    summary: 'One message, and every step of its delivery with the evidence',
    answer: MailSchema.extend({
      steps: z.array(z.object({ at: z.string(), state: z.string(), evidence: z.string() })),
      waits_for: z.string().optional().describe('What it waits for right now, if it is not given yet'),
    }),
  },
  mailbox: {
    method: 'get',
    path: '/api/v1/mailbox',
    who: 'token',
    summary: "An agent's mailbox in order; nothing is marked read",
    query: z.object({
      agent: z.string().optional().describe('The caller itself, unless it was granted more'),
      filter: filter.default('unread'),
      after: z.string().optional().describe('Only messages after this id'),
      limit: count(1_000_000).optional(),
    }),
    answer: z.object({ messages: z.array(MailSchema) }),
  },
  deliveries: {
    method: 'get',
    path: '/api/v1/deliveries',
    who: 'token',
    summary: 'Open deliveries by agent and state',
    query: z.object({ agent: z.string().optional() }),
    answer: z.object({ deliveries: z.array(DeliveryCountSchema) }),
  },
  nextDeliveries: {
    method: 'get',
    path: '/api/v1/deliveries/next',
    who: 'token',
    summary: 'Wait for messages and take them; acknowledge them by id, or they come again',
    query: z.object({
      agent: z.string().optional().describe('The caller itself; the operator names the agent'),
      wait,
    }),
    answer: z.object({ messages: z.array(MailSchema) }),
    also: { 'text/event-stream': 'The same as a stream: one event `message` for each' },
  },
} as const satisfies Routes
