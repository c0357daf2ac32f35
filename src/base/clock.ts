/** Passed in, so that the core and the runtimes work under a simulated clock. */
export interface Clock {
  now(): number
  /** Calls back after that long; the returned function cancels. */
  after(ms: number, callback: () => void): () => void
}

export function sleep(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => clock.after(ms, resolve))
}

/** What the promise settles with, unless the signal aborts first: then it rejects with the reason. */
export async function unlessGone<Value>(
  promise: Promise<Value>,
  gone: AbortSignal | undefined,
): Promise<Value> {
  if (gone === undefined) return await promise
  const { promise: calledOff, reject } = Promise.withResolvers<never>()
  const callOff = () => reject(gone.reason)
  gone.addEventListener('abort', callOff)
  if (gone.aborted) callOff()
  try {
    return await Promise.race([promise, calledOff])
  } finally {
    // A signal may outlive many waits.
    gone.removeEventListener('abort', callOff)
  }
}

/** What the promise resolves with, or undefined when that takes longer. */
export function within<Value>(clock: Clock, ms: number, promise: Promise<Value>): Promise<Value | undefined> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () => resolve(undefined))
    promise.then(resolve, reject).finally(cancel)
  })
}
