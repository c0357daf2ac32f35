/** Runs at most `limit` jobs in parallel, and jobs with the same key one at a time, first come first served. */
export function createKeyedLimiter(limit: number) {
  const waiting: { key: string; start(): void }[] = []
  const active = new Set<string>()

  function startNext() {
    if (active.size >= limit) return
    const index = waiting.findIndex(({ key }) => !active.has(key))
    const [next] = index < 0 ? [] : waiting.splice(index, 1)
    if (next === undefined) return
    active.add(next.key)
    next.start()
    startNext()
  }

  return {
    async run<T>(key: string, job: () => Promise<T>): Promise<T> {
      await new Promise<void>((start) => {
        waiting.push({ key, start })
        startNext()
      })
      try {
        return await job()
      } finally {
        active.delete(key)
        startNext()
      }
    },
  }
}

export type KeyedLimiter = ReturnType<typeof createKeyedLimiter>
