/** Ends agents, tmux servers and folders with the benchmark, however it ends. */
const endings = new Set<() => Promise<void>>()

/** Ends it once, whoever asks first. */
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

/** On Ctrl-C and the like. The newest first: it may stand on what came before it. */
export function endOnSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, async () => {
      process.stderr.write('\nending what was started\n')
      // A process that still runs loses its folder; that needs no report.
      process.on('uncaughtException', () => {})
      for (const end of [...endings].reverse()) await end().catch(() => {})
      process.exit(130)
    })
  }
}
