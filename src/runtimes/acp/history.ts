import type { Whereabouts } from '../runtime.ts'

const MARKER = /\[ORCHUB MESSAGE (msg_\d{1,16})\]/g
/** Longer than a marker: a replay may cut one in two. */
const CARRIED = 64
/** So many ids are remembered. What is older counts as unknown. */
const REMEMBERED = 5000

/** Which messages the agent was given, as far as this process saw it or the agent's own replay shows it (C25). */
export interface History {
  /** A turn with these was handed to the pipe. */
  wrote(ids: readonly string[]): void
  /** It was taken for sure, or for sure not. */
  settle(ids: readonly string[], isTaken: boolean): void
  /** A piece of what the agent replays as said to it. */
  replay(text: string): void
  /** The replay is over, and it was the whole conversation. */
  replayed(): void
  locate(id: string): Whereabouts
}

/** `before`: what may have been said to the agent before this process. */
export function createHistory(before: 'nothing' | 'something'): History {
  const taken = new Map<string, string>()
  const doubtful = new Set<string>()
  let knowsAll = before === 'nothing'
  let source = 'this is a new conversation, and'
  let carried = ''

  function remember(id: string, evidence: string) {
    taken.set(id, evidence)
    if (taken.size <= REMEMBERED) return
    taken.delete(taken.keys().next().value!)
    knowsAll = false
  }

  return {
    wrote(ids) {
      for (const id of ids) doubtful.add(id)
    },
    settle(ids, isTaken) {
      for (const id of ids) {
        doubtful.delete(id)
        if (isTaken) remember(id, 'the agent took it in this session')
      }
    },
    replay(text) {
      const window = carried + text
      for (const [, id] of window.matchAll(MARKER)) remember(id!, 'it is in the history the agent replayed')
      carried = window.slice(-CARRIED)
    },
    replayed() {
      knowsAll = true
      source = 'it is not in the history the agent replayed, and'
    },
    locate(id) {
      const evidence = taken.get(id)
      if (evidence !== undefined) return { at: 'submitted', evidence }
      if (doubtful.has(id))
        return { at: 'unknown', evidence: 'it was written, and the agent gave no sign of it' }
      if (knowsAll) return { at: 'absent', evidence: `${source} it was not written since` }
      return { at: 'unknown', evidence: 'the agent does not show what it was given before this session' }
    },
  }
}
