import { AppError } from '../../base/errors.ts'
import type { Store } from '../../store/store.ts'
import { isSigned } from '../core/signature.ts'
import { keepDelivery } from '../store/deliveries.ts'

/** A request as it came: nothing in it is believed before its signature is. */
export interface Incoming {
  readonly body: string
  readonly delivery: string | undefined
  readonly event: string | undefined
  readonly signature: string | undefined
  /** Without its parameters. */
  readonly mediaType: string | undefined
}

export interface Received {
  readonly status: 'accepted' | 'known'
  readonly delivery: string
}

const DELIVERY = /^[A-Za-z0-9-]{1,64}$/
/** Such as `projects_v2_item`. */
const EVENT = /^[a-z][a-z0-9_]{0,63}$/

/** Proven, stored, and answered; what becomes of it is seen to afterwards (C25). */
export async function receive(
  store: Store,
  secret: string | undefined,
  { body, delivery, event, signature, mediaType }: Incoming,
): Promise<Received> {
  if (secret === undefined || secret === '') {
    throw new AppError('CONFIG_INVALID', 'The secret of the webhook is not in the environment', {
      hint: 'Set the variable that github.secret_env in orc.yaml names, and start the service again.',
    })
  }
  if (!(await isSigned(secret, body, signature))) {
    throw new AppError('UNAUTHENTICATED', 'The signature of the webhook is missing or wrong', {
      hint: 'The secret in the settings of the webhook and the one that the service has must be the same.',
    })
  }
  if (delivery === undefined || !DELIVERY.test(delivery) || event === undefined || !EVENT.test(event)) {
    throw new AppError('INVALID_REQUEST', 'X-GitHub-Delivery or X-GitHub-Event is missing or malformed')
  }
  if (mediaType !== 'application/json' || !isObject(body)) {
    throw new AppError('INVALID_REQUEST', 'The body is no JSON object, or does not say that it is JSON', {
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
