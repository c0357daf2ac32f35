/** Stops agents and tmux servers and removes folders when the benchmark ends, for whatever reason. */
const endings = new Set<() => Promise<void>>()

/** Ends it once, even if asked twice. */
export function endWithBench(end: () => Promise<void>): () => Promise<void> {
  let ended: Promise<void> | undefined
  const once = () => {
    endings.delete(once)
    ended ??= end()
    return ended
  }
  endings.add(once)
  return once
}

/** Runs on Ctrl-C and other signals, newest first, since newer things may depend on older ones. */
export function endOnSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, async () => {
      process.stderr.write('\nending what was started\n')
      // A process that still runs loses its folder; ignore its error.
      process.on('uncaughtException', () => {})
      for (const end of [...endings].reverse()) await end().catch(() => {})
      process.exit(130)
    })
  }
}
