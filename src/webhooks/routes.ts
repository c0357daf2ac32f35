import type { RouteHandler } from '../api/handle-request.ts'

export const listWebhooks: RouteHandler<'webhooks'> = async ({ engine }) => ({
  webhooks: await engine.webhooks.list(),
})

export const testWebhook: RouteHandler<'testWebhook'> = async ({ engine }, { params }) => {
  const posted = await engine.webhooks.test(params.name!)
  const webhook = (await engine.webhooks.list()).find(({ name }) => name === params.name)!
  return {
    sent: posted.outcome === 'sent',
    status: posted.status,
    error: posted.outcome === 'sent' ? undefined : posted.error,
    webhook,
  }
}
