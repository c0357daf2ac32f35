import { isRecoverable } from '../core/failure.ts'
import { takenSince, unknownDeliveries } from '../store/deliveries.ts'
import type { GithubParts } from './settings.ts'

/** GitHub sends again what is that old at most. */
const REDELIVERABLE_MS = 3 * 24 * 3600_000
const AGAIN_MS = 60_000
const MOST_TRIES = 10

/**
 * Webhooks that came while the service was away. GitHub does not send them again by itself: it is asked to, of an App.
 * What is in the store was taken, whatever GitHub believes.
 */
export function createMissed({ store, github, clock, log }: GithubParts) {
  let underWay: Promise<void> = Promise.resolve()
  let cancel: (() => void) | undefined
  let isClosed = false

  async function fetchThem(tries: number): Promise<void> {
    if (isClosed) return
    // What went out before it was there for the first time, it did not miss.
    const first = await store.write(takenSince)
    const found = await github.deliveries!.missed(Math.max(first, clock.now() - REDELIVERABLE_MS))
    const failure = found.ok ? await askFor(found.value) : found.failure
    if (failure === undefined || isClosed) return
    log.warn({ failure }, 'webhooks that were missed could not be asked for')
    if (!isRecoverable(failure) || tries >= MOST_TRIES) return
    const wait = Math.max(failure.retryAfterMs ?? 0, AGAIN_MS)
    cancel = clock.after(wait, () => run(tries + 1))
  }

  async function askFor(missed: readonly { id: number; guid: string }[]) {
    const unknown = new Set(
      await unknownDeliveries(
        store,
        missed.map(({ guid }) => guid),
      ),
    )
    const wanted = missed.filter(({ guid }) => unknown.has(guid))
    for (const { id } of wanted) {
      if (isClosed) return undefined
      const asked = await github.deliveries!.redeliver(id)
      if (!asked.ok) return asked.failure
    }
    log.info({ count: wanted.length }, 'webhooks that were missed are sent again')
    return undefined
  }

  function run(tries: number) {
    underWay = fetchThem(tries).catch((error: unknown) =>
      log.warn({ err: error }, 'which webhooks were missed is not known'),
    )
  }

  return {
    /** Nobody waits for it: GitHub may be away. */
    begin() {
      if (github.deliveries !== undefined) return run(1)
      log.info(
        {},
        'with a token, webhooks that were missed while the service was away cannot be asked for: send them again by hand (Recent Deliveries of the webhook), or use a GitHub App',
      )
    },
    async close() {
      isClosed = true
      cancel?.()
      await underWay
    },
  }
}
