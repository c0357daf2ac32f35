import { isTemporary } from './transport.ts'

const FIRST_MS = 100
const LONGEST_MS = 10_000

/** Exponential backoff with jitter, so that many clients don't reconnect at once. */
export function backoff(failures: number, longestMs = LONGEST_MS): number {
  const most = Math.min(longestMs, FIRST_MS * 2 ** failures)
  return most / 2 + Math.random() * (most / 2)
}

/** Resolves early, without throwing, when the signal aborts. */
export function wait(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal?.addEventListener('abort', done, { once: true })
    if (signal?.aborted === true) done()
  })
}

/** After a connection that lasted this long, the backoff starts over. */
const LASTING_MS = 5000

/**
 * Repeats `once` after broken connections. `once` calls `alive` when it is connected. Errors before the first connection
 * are thrown, so that a wrong address shows at once; later ones only if a retry can't fix them.
 */
export async function* reconnecting<T>(
  once: (alive: () => void) => AsyncIterable<T>,
  signal: AbortSignal | undefined,
  longestMs?: number,
): AsyncGenerator<T> {
  const isOver = () => signal?.aborted === true
  let wasAlive = false
  let failures = 0
  while (!isOver()) {
    const start = Date.now()
    try {
      yield* once(() => {
        wasAlive = true
      })
    } catch (error) {
      if (isOver()) return
      if (!wasAlive || !isTemporary(error)) throw error
    }
    failures = Date.now() - start > LASTING_MS ? 0 : failures + 1
    await wait(backoff(failures, longestMs), signal)
  }
}
