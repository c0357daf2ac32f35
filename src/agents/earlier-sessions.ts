import type { Log } from '../base/log.ts'
import type { Runtime } from '../runtimes/runtime.ts'
import type { Store } from '../store/store.ts'
import { forgetSessionState, readSession, type SessionRow } from './store.ts'

/** Saved state of earlier sessions, and the processes that may still run from them. */
export interface EarlierSessions {
  /** The state saved for this runtime. State of another runtime is useless to it, so that session is ended. */
  savedStateFor(runtime: Runtime, row: SessionRow): Promise<unknown>
  /** Ends the agent's processes. Its conversation can still be resumed. */
  end(agent: string): Promise<void>
  /** Ends the agent's processes and forgets its saved state. */
  discard(agent: string): Promise<void>
}

/** As stored in `sessions.kept`. */
interface StoredState {
  runtime: string
  value: unknown
}

export function createEarlierSessions(
  store: Store,
  log: Log,
  runtimes: ReadonlyMap<string, Runtime>,
): EarlierSessions {
  async function discardState(agent: string, stored: string) {
    if (await endProcesses(agent, stored)) await store.write((tx) => forgetSessionState(tx, agent))
  }

  /** Returns false if a process may still run. */
  async function endProcesses(agent: string, stored: string): Promise<boolean> {
    const { runtime, value } = JSON.parse(stored) as StoredState
    try {
      await runtimes.get(runtime)?.discard?.(value)
      return true
    } catch (error) {
      log.error({ agent, err: error }, 'processes of an earlier session could not be ended')
      return false
    }
  }

  const storedStateOf = async (agent: string) => (await readSession(store, agent))?.kept ?? undefined

  return {
    async savedStateFor(runtime, { agent, kept }) {
      if (kept === null) return undefined
      const { runtime: savedBy, value } = JSON.parse(kept) as StoredState
      if (savedBy === runtime.name) return value
      await discardState(agent, kept)
      return undefined
    },
    async end(agent) {
      const stored = await storedStateOf(agent)
      if (stored !== undefined) await endProcesses(agent, stored)
    },
    async discard(agent) {
      const stored = await storedStateOf(agent)
      if (stored !== undefined) await discardState(agent, stored)
    },
  }
}
