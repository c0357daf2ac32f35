import type { SessionState } from '../../base/agent.ts'
import { createSessionState } from '../session-state.ts'

export type OpenCodeActivity = ReturnType<typeof createActivity>

/** The facts from which the session's state is derived, reported on each change. */
export function createActivity(options: {
  /** Found running: it may be in any state except starting. */
  readonly found: boolean
  changed(state: SessionState, evidence: string): void
}) {
  let connection: 'never' | 'up' | 'lost' | 'ended' = options.found ? 'lost' : 'never'
  /** Conversations in a turn, including subagents'. */
  let busy: ReadonlySet<string> = new Set()
  let openDialogs = 0
  const state = createSessionState(derive(), options.changed)
  const settle = (evidence: string) => state.become(derive(), evidence)

  function derive(): SessionState {
    if (connection === 'ended') return 'exited'
    if (connection === 'never') return 'initializing'
    if (connection === 'lost') return 'unknown'
    if (openDialogs > 0) return 'waiting_input'
    return busy.size > 0 ? 'busy' : 'idle'
  }

  return {
    get state() {
      return state.now
    },
    idleWithin: state.idleWithin,
    /** The statuses just read, before the connection counts as up. */
    reread(conversations: Iterable<string>) {
      busy = new Set(conversations)
    },
    status(conversation: string, isBusy: boolean, evidence: string) {
      const next = new Set(busy)
      if (isBusy) next.add(conversation)
      else next.delete(conversation)
      busy = next
      settle(evidence)
    },
    dialogs(count: number, evidence: string) {
      openDialogs = count
      settle(evidence)
    },
    connection(next: 'up' | 'lost' | 'ended', evidence: string) {
      if (connection === 'ended') return
      // Until its first response, it is still starting.
      if (next === 'lost' && connection === 'never') return
      connection = next
      settle(evidence)
    },
  }
}
