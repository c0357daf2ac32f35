/** The sources of events: webhooks, redeliveries that we request after a downtime, and scheduled triggers. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { Cron } from 'croner'
import { AppError } from '../base/errors.ts'
import type { Store, Tx } from '../store/store.ts'
import { clearTimer, moveTimer, type TimerRow } from '../store/timers.ts'
import { isRecord } from './core/protocol.ts'
import type { GithubDependencies } from './dependencies.ts'
import { isRecoverable } from './port.ts'
import { keepDelivery, readDelivery, takenSince } from './store.ts'
import type { Trigger } from './team-settings.ts'

/** A webhook request, untrusted until its signature is verified. */
export interface IncomingWebhook {
  readonly body: string
  readonly delivery: string | undefined
  readonly event: string | undefined
  readonly signature: string | undefined
  /** The content type without its parameters, such as `application/json`. */
  readonly mediaType: string | undefined
}

export interface WebhookReceipt {
  readonly status: 'accepted' | 'known'
  readonly delivery: string
}

/** X-GitHub-Delivery. */
const DELIVERY = /^[A-Za-z0-9-]{1,64}$/
/** X-GitHub-Event, such as `projects_v2_item`. */
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
  if (!isSigned(secret, body, signature)) {
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
    return isRecord(JSON.parse(body))
  } catch {
    return false
  }
}

/** Whether the sender of the unparsed body knows the secret. */
function isSigned(secret: string, body: string, signature: string | undefined): boolean {
  if (signature === undefined || !/^sha256=[0-9a-f]{64}$/.test(signature) || body === '') return false
  const expected = createHmac('sha256', secret).update(body).digest()
  return timingSafeEqual(expected, Buffer.from(signature.slice('sha256='.length), 'hex'))
}

/** GitHub redelivers webhooks of the last three days. */
const REDELIVERABLE_MS = 3 * 24 * 3600_000
const RETRY_MS = 60_000
const MAX_TRIES = 10

/**
 * Asks GitHub to redeliver webhooks that it could not deliver while the service was down; GitHub doesn't do that by
 * itself, and only an App can ask. Deliveries in our store count as received even if GitHub believes otherwise.
 */
export function createRedelivery({ store, github, clock, log }: GithubDependencies) {
  let running: Promise<void> = Promise.resolve()
  let cancel: (() => void) | undefined
  let isClosed = false

  async function requestMissed(tries: number): Promise<void> {
    if (isClosed) return
    // Webhooks from before the first start of the service were never meant for it.
    const first = await store.write(takenSince)
    const found = await github.deliveries!.missed(Math.max(first, clock.now() - REDELIVERABLE_MS))
    const failure = found.ok ? await redeliver(found.value) : found.error
    if (failure === undefined || isClosed) return
    log.warn({ failure }, 'cannot request missed webhooks')
    if (!isRecoverable(failure) || tries >= MAX_TRIES) return
    const wait = Math.max(failure.retryAfterMs ?? 0, RETRY_MS)
    cancel = clock.after(wait, () => run(tries + 1))
  }

  async function redeliver(missed: readonly { id: number; guid: string }[]) {
    let count = 0
    for (const { id, guid } of missed) {
      if (isClosed) return undefined
      if ((await readDelivery(store, guid)) !== undefined) continue
      const requested = await github.deliveries!.redeliver(id)
      if (!requested.ok) return requested.error
      count += 1
    }
    log.info({ count }, 'requested missed webhooks again')
    return undefined
  }

  function run(tries: number) {
    running = requestMissed(tries).catch((error: unknown) =>
      log.warn({ err: error }, 'cannot find out which webhooks were missed'),
    )
  }

  return {
    /** Runs in the background, because GitHub may be unavailable. */
    begin() {
      if (github.deliveries !== undefined) return run(1)
      log.info(
        {},
        'a token cannot request missed webhooks: redeliver them by hand (Recent Deliveries of the webhook), or use a GitHub App',
      )
    },
    async close() {
      isClosed = true
      cancel?.()
      await running
    },
  }
}

const KIND = 'github_trigger'
export const PERIODIC = 'periodic_trigger'

/** Stores a scheduled trigger as a delivery. Its id contains the time, so that it is processed once even after a crash. */
export function createTriggers(
  { store, timers, settings, clock, team }: GithubDependencies,
  kick: () => void,
) {
  timers.on(KIND, async (tx, name) => {
    const trigger = team().config.github?.schedule.find((one) => one.name === name)
    if (trigger === undefined) return
    await keepDelivery(tx, {
      id: `${PERIODIC}-${name}-${tx.now}`,
      event: PERIODIC,
      payload: JSON.stringify({ action: name, repository: { full_name: trigger.repository } }),
    })
    arm(tx, trigger)
    tx.afterCommit(kick)
  })

  function arm(tx: Tx, trigger: Trigger) {
    const next = new Cron(trigger.cron, { timezone: trigger.timezone, paused: true }).nextRun(
      new Date(tx.now),
    )
    // The pattern may never match again.
    if (next === null) return
    const due = next.getTime()
    moveTimer(tx, KIND, trigger.name, due)
    tx.afterCommit(() => timers.setFor(due))
  }

  return {
    /** Arms the timers of orc.yaml. A trigger that came due while the service was down fires once, now. */
    async follow(): Promise<void> {
      await store.write(async (tx) => {
        const rows = await tx.all<TimerRow>('SELECT * FROM timers WHERE kind = ?', [KIND])
        for (const { ref } of rows) {
          if (!settings().schedule.some(({ name }) => name === ref)) clearTimer(tx, KIND, ref)
        }
        for (const trigger of settings().schedule) {
          const isDue = rows.some(({ ref, due_at }) => ref === trigger.name && due_at <= clock.now())
          if (!isDue) arm(tx, trigger)
        }
      })
    },
  }
}
