import { z } from 'zod'
import type { Routes } from '../base/route.ts'

const WebhookStateSchema = z.object({
  name: z.string(),
  url: z.string().describe('Without the path, which may be secret'),
  format: z.enum(['json', 'slack']),
  events: z.array(z.string()),
  state: z
    .enum(['active', 'failing', 'dead'])
    .describe('dead: it accepted nothing for a day, or answered 410; nothing is sent until a test succeeds'),
  pending: z.number().describe('Events waiting to be sent'),
  sent: z.number(),
  dropped: z.number(),
  sent_at: z.string().optional(),
  failing_since: z.string().optional(),
  next_attempt_at: z.string().optional(),
  last_error: z.string().optional(),
})

export type WebhookState = z.output<typeof WebhookStateSchema>

export const WEBHOOK_ROUTES = {
  webhooks: {
    method: 'get',
    path: '/api/v1/webhooks',
    who: 'operator',
    summary: 'List the webhooks of orc.yaml with their queues and last errors',
    answer: z.object({ webhooks: z.array(WebhookStateSchema) }),
  },
  testWebhook: {
    method: 'post',
    path: '/api/v1/webhooks/{name}/test',
    who: 'operator',
    summary: 'Post one webhook.test event now; a successful test reactivates a dead webhook',
    body: z.object({}),
    answer: z.object({
      sent: z.boolean(),
      status: z.number().optional(),
      error: z.string().optional(),
      webhook: WebhookStateSchema,
    }),
  },
} as const satisfies Routes
