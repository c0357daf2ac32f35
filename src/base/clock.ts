/** Passed in everywhere: tests run on a simulated clock. */
export interface Clock {
  now(): number
  /** Calls back once after the delay. The returned function cancels it. */
  after(ms: number, callback: () => void): () => void
}

export function sleep(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => clock.after(ms, resolve))
}

/** Settles like the promise, or rejects with the signal's reason if it aborts first. */
export async function unlessAborted<Value>(
  promise: Promise<Value>,
  signal: AbortSignal | undefined,
): Promise<Value> {
  if (signal === undefined) return await promise
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(signal.reason)
  signal.addEventListener('abort', onAbort)
  if (signal.aborted) onAbort()
  try {
    return await Promise.race([promise, aborted])
  } finally {
    // A signal may outlive many waits: leaving listeners behind would leak.
    signal.removeEventListener('abort', onAbort)
  }
}

/** Settles like the promise, or resolves with undefined after `ms`. */
export function within<Value>(clock: Clock, ms: number, promise: Promise<Value>): Promise<Value | undefined> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () => resolve(undefined))
    promise.then(resolve, reject).finally(cancel)
  })
}
