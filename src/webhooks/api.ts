import { z } from 'zod'
import type { Routes } from '../base/route.ts'

const WebhookStateSchema = z.object({
  name: z.string(),
  url: z.string().describe('Without its path, which may be a secret'),
  format: z.enum(['json', 'slack']),
  events: z.array(z.string()),
  state: z
    .enum(['active', 'failing', 'dead'])
    .describe('dead: it took nothing for a day, or is gone; nothing is sent until a test succeeds'),
  pending: z.number().describe('Events that wait to be sent'),
  sent: z.number(),
  dropped: z.number(),
  sent_at: z.string().optional(),
  failing_since: z.string().optional(),
  next_attempt_at: z.string().optional(),
  last_error: z.string().optional(),
})

export const WEBHOOK_ROUTES = {
  webhooks: {
    method: 'get',
    path: '/api/v1/webhooks',
    who: 'operator',
    summary: 'The webhooks of orc.yaml: what waits, what was sent, what went wrong',
    answer: z.object({ webhooks: z.array(WebhookStateSchema) }),
  },
  testWebhook: {
    method: 'post',
    path: '/api/v1/webhooks/{name}/test',
    who: 'operator',
    summary: 'Post one event webhook.test now; with its success a dead webhook is used again',
    body: z.object({}),
    answer: z.object({
      sent: z.boolean(),
      status: z.number().optional(),
      error: z.string().optional(),
      webhook: WebhookStateSchema,
    }),
  },
} as const satisfies Routes
