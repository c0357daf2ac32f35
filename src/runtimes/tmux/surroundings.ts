/** What the tmux runtime is given from outside; the engine's clock and log fit. */
export interface Clock {
  now(): number
  /** Calls back after that long; the returned function cancels. */
  after(ms: number, callback: () => void): () => void
}

export interface Log {
  warn(fields: Record<string, unknown>, text: string): void
  error(fields: Record<string, unknown>, text: string): void
}

export function sleep(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => clock.after(ms, resolve))
}

/** What the promise resolves with, or undefined when that takes longer. */
export function within<Value>(clock: Clock, ms: number, promise: Promise<Value>): Promise<Value | undefined> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () => resolve(undefined))
    promise.then(resolve, reject).finally(cancel)
  })
}
