import type { Sessions } from '../../agents/sessions.ts'
import type { AuditEntry } from '../../audit/entry.ts'
import type { SessionState } from '../../base/agent.ts'
import type { Clock } from '../../base/clock.ts'
import type { Store } from '../../store/store.ts'

export interface StartupsOptions {
  store: Pick<Store, 'onCommit'>
  clock: Clock
  sessions(): Pick<Sessions, 'wake' | 'session'>
  isHalted(): boolean
}

/** A program that takes longer may wait for a person, for example to log in or to trust the folder. */
const SLOW_MS = 30_000
const SCREEN_LINES = 30
const GONE: ReadonlySet<SessionState> = new Set(['exited', 'error'])

/** Waits until programs that were started for a run can take a task. */
export function createStartups({ store, clock, sessions, isHalted }: StartupsOptions) {
  const waiting = new Map<string, (session: SessionState, evidence: string) => void>()
  const stopListening = store.onCommit((entries: readonly AuditEntry[]) => {
    if (waiting.size === 0) return
    for (const { type, data } of entries) {
      if (type !== 'session.changed') continue
      const { agent, session, evidence } = data as { agent: string; session: SessionState; evidence: string }
      waiting.get(agent)?.(session, evidence)
    }
  })

  /** Returns why the program will not be ready; undefined: it is. Calls `slow` once, with its screen. */
  async function ready(
    agent: string,
    slow: (screen: string) => void,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { promise, resolve } = Promise.withResolvers<string | undefined>()
    const called = () => resolve('it was stopped before its program started')
    const cancel = clock.after(SLOW_MS, () => {
      const session = sessions().session(agent)
      void Promise.resolve(session?.screen?.(SCREEN_LINES))
        .catch(() => undefined)
        .then((screen) => waiting.has(agent) && slow(screen?.trim() ?? ''))
    })
    // Events before the start may belong to an earlier session.
    let isStarted = false
    let last = 'it could not be started'
    const never = () => resolve(`its program did not start: ${last}`)
    waiting.set(agent, (state, evidence) => {
      if (!GONE.has(state)) {
        if (state !== 'initializing') resolve(undefined)
        return
      }
      last = evidence
      if (isStarted) never()
    })
    signal.addEventListener('abort', called, { once: true })
    try {
      if (signal.aborted) called()
      await sessions().wake(agent)
      isStarted = true
      const state = sessions().session(agent)?.state
      if (state !== undefined && !GONE.has(state)) {
        if (state !== 'initializing') resolve(undefined)
      } else if (!isHalted()) never()
      return await promise
    } finally {
      cancel()
      waiting.delete(agent)
      signal.removeEventListener('abort', called)
    }
  }

  return { ready, close: stopListening }
}

export type Startups = ReturnType<typeof createStartups>
