import type { SessionState } from '../base/agent.ts'

export type StateKeeper = ReturnType<typeof createSessionState>

/** The session's state, reported on each change. `exited` is final. */
export function createSessionState(
  first: SessionState,
  changed: (state: SessionState, evidence: string) => void,
) {
  let now = first
  const watchers = new Set<() => void>()

  return {
    get now() {
      return now
    },
    become(next: SessionState, evidence: string) {
      if (now === next || now === 'exited') return
      now = next
      changed(next, evidence)
      for (const watcher of [...watchers]) watcher()
    },
    /** Resolves with whether it becomes idle within that time. */
    async idleWithin(ms: number): Promise<boolean> {
      const { promise, resolve } = Promise.withResolvers<void>()
      const watcher = () => now === 'idle' && resolve()
      const timer = setTimeout(resolve, ms)
      watchers.add(watcher)
      watcher()
      await promise
      watchers.delete(watcher)
      clearTimeout(timer)
      return now === 'idle'
    },
  }
}
