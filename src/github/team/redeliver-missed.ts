import { isRecoverable } from '../core/failure.ts'
import { takenSince, unknownDeliveries } from '../store/deliveries.ts'
import type { GithubParts } from './parts.ts'

/** GitHub redelivers webhooks of the last three days. */
const REDELIVERABLE_MS = 3 * 24 * 3600_000
const RETRY_MS = 60_000
const MAX_TRIES = 10

/**
 * Asks GitHub to redeliver webhooks that it could not deliver while the service was down; GitHub doesn't do that by
 * itself, and only an App can ask. Deliveries in our store count as received even if GitHub believes otherwise.
 */
export function createRedelivery({ store, github, clock, log }: GithubParts) {
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
    const unknown = new Set(
      await unknownDeliveries(
        store,
        missed.map(({ guid }) => guid),
      ),
    )
    const wanted = missed.filter(({ guid }) => unknown.has(guid))
    for (const { id } of wanted) {
      if (isClosed) return undefined
      const requested = await github.deliveries!.redeliver(id)
      if (!requested.ok) return requested.error
    }
    log.info({ count: wanted.length }, 'requested missed webhooks again')
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
