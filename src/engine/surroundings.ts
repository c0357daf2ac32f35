/** Passed in, so that the whole core runs under a simulated clock. */
export interface Clock {
  now(): number
  /** Calls back after that long; the returned function cancels. */
  after(ms: number, callback: () => void): () => void
}

export interface Log {
  debug(fields: Record<string, unknown>, text: string): void
  info(fields: Record<string, unknown>, text: string): void
  warn(fields: Record<string, unknown>, text: string): void
  error(fields: Record<string, unknown>, text: string): void
}
