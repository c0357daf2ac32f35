import { AppError } from '../../base/errors.ts'
import type { Store } from '../../store/store.ts'
import { isSigned } from '../core/webhook-signature.ts'
import { keepDelivery } from '../store/deliveries.ts'

/** An HTTP request, untrusted until its signature is verified. */
export interface IncomingWebhook {
  readonly body: string
  readonly delivery: string | undefined
  readonly event: string | undefined
  readonly signature: string | undefined
  /** Without its parameters. */
  readonly mediaType: string | undefined
}

export interface WebhookReceipt {
  readonly status: 'accepted' | 'known'
  readonly delivery: string
}

const DELIVERY = /^[A-Za-z0-9-]{1,64}$/
/** Such as `projects_v2_item`. */
const EVENT = /^[a-z][a-z0-9_]{0,63}$/

/** Verifies and stores a webhook. Processing happens later, so that GitHub gets its answer at once (C25). */
export async function receiveWebhook(
  store: Store,
  secret: string | undefined,
  { body, delivery, event, signature, mediaType }: IncomingWebhook,
): Promise<WebhookReceipt> {
  if (secret === undefined || secret === '') {
    throw new AppError('CONFIG_INVALID', 'The webhook secret is not set in the environment', {
      hint: 'Set the variable that github.secret_env in orc.yaml names, and restart the service.',
    })
  }
  if (!(await isSigned(secret, body, signature))) {
    throw new AppError('UNAUTHENTICATED', 'The webhook signature is missing or wrong', {
      hint: 'Use the same secret in the webhook settings and in the environment of the service.',
    })
  }
  if (delivery === undefined || !DELIVERY.test(delivery) || event === undefined || !EVENT.test(event)) {
    throw new AppError('INVALID_REQUEST', 'X-GitHub-Delivery or X-GitHub-Event is missing or malformed')
  }
  if (mediaType !== 'application/json' || !isObject(body)) {
    throw new AppError('INVALID_REQUEST', 'The body is not a JSON object sent as application/json', {
      hint: 'Choose application/json as the content type of the webhook.',
    })
  }
  const isNew = await store.write((tx) => keepDelivery(tx, { id: delivery, event, payload: body }))
  return { status: isNew ? 'accepted' : 'known', delivery }
}

function isObject(body: string): boolean {
  try {
    const value: unknown = JSON.parse(body)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}
