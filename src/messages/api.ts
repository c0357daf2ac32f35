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
  delivery: z.enum(DELIVERY_STATES).describe('The confirmed state of the delivery'),
  attempts: z.number(),
  correlation_id: z.string(),
  in_reply_to: z.string().optional(),
  task_id: z.string().optional().describe('The task the message is about'),
  kind: z.enum(TASK_MESSAGE_KINDS).optional().describe('The role of the message in that task'),
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
    summary: 'The newest messages the caller may see, oldest first',
    query: z.object({
      agent: z.string().optional().describe('Only messages that this agent sent or received'),
      with: z.string().optional().describe('Only messages that this agent sent or received too'),
      thread: z.string().optional().describe('Only messages of one conversation, by its `correlation_id`'),
      before: z.string().optional().describe('Only messages older than this id, for the previous page'),
      since: time.optional(),
      limit: count(1000).default(200),
    }),
    answer: z.object({ messages: z.array(MailSchema) }),
  },
  message: {
    method: 'get',
    path: '/api/v1/messages/{id}',
    who: 'token',
    summary: 'One message with every step of its delivery and the evidence',
    answer: MailSchema.extend({
      steps: z.array(z.object({ at: z.string(), state: z.string(), evidence: z.string() })),
      waits_for: z
        .string()
        .optional()
        .describe('What the message waits for now, if it has not been delivered'),
    }),
  },
  mailbox: {
    method: 'get',
    path: '/api/v1/mailbox',
    who: 'token',
    summary: "An agent's mailbox in order; marks nothing as read",
    query: z.object({
      agent: z.string().optional().describe('Defaults to the caller; other mailboxes need permission'),
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
    summary: 'Wait for messages and take them; acknowledge them by id, or they are delivered again',
    query: z.object({
      agent: z.string().optional().describe('Defaults to the caller; required for the operator'),
      wait,
    }),
    answer: z.object({ messages: z.array(MailSchema) }),
    also: { 'text/event-stream': 'A stream with one event `message` per message' },
  },
} as const satisfies Routes
