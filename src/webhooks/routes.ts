import type { AnswerOf } from '../api/contract.ts'
import type { RouteHandler } from '../api/handle-request.ts'
import type { WebhookState } from './webhooks.ts'

type WebhookAnswer = AnswerOf<'webhooks'>['webhooks'][number]

export const listWebhooks: RouteHandler<'webhooks'> = async ({ engine }) => ({
  webhooks: (await engine.webhooks.list()).map(wireState),
})

export const testWebhook: RouteHandler<'testWebhook'> = async ({ engine }, { params }) => {
  const posted = await engine.webhooks.test(params.name!)
  const state = (await engine.webhooks.list()).find(({ name }) => name === params.name)
  return {
    sent: posted.outcome === 'sent',
    ...(posted.status === undefined ? {} : { status: posted.status }),
    ...(posted.outcome === 'sent' ? {} : { error: posted.error }),
    webhook: wireState(state!),
  }
}

function wireState(state: WebhookState): WebhookAnswer {
  const { sentAt, failingSince, nextAttemptAt, lastError, format, events, ...same } = state
  return {
    ...same,
    format: format as WebhookAnswer['format'],
    events: [...events],
    ...timeAt('sent_at', sentAt),
    ...timeAt('failing_since', failingSince),
    ...timeAt('next_attempt_at', nextAttemptAt),
    ...(lastError === undefined ? {} : { last_error: lastError }),
  }
}

function timeAt<Key extends string>(key: Key, at: number | undefined): { [K in Key]?: string } {
  return (at === undefined ? {} : { [key]: new Date(at).toISOString() }) as { [K in Key]?: string }
}
