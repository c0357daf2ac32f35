import type { Clock } from '../../base/clock.ts'
import type { MessageLocation } from '../runtime.ts'
import type { AcpUpdate } from './session-update.ts'

const MARKER = /\[ORCHUB MESSAGE (msg_\d{1,16})\]/g
/** Longer than a marker, since a replay may split one. */
const CARRIED = 64
/** Older ids than this many count as unknown. */
const REMEMBERED = 5000

/** Messages the agent received, as far as this process or the agent's own replay shows (C25). */
interface History {
  /** A turn with these ids was written to the pipe. */
  wrote(ids: readonly string[]): void
  /** The turn was certainly accepted, or certainly not. */
  settle(ids: readonly string[], isTaken: boolean): void
  /** A chunk of the user text that the agent replays. */
  replay(text: string): void
  /** The replay has ended and covered the whole conversation. */
  replayed(): void
  locate(id: string): MessageLocation
}

/** `before`: whether the agent may have received anything before this process. */
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
        if (isTaken) remember(id, 'the agent accepted it in this session')
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
        return { at: 'unknown', evidence: 'it was written, but the agent gave no evidence of it' }
      if (knowsAll) return { at: 'absent', evidence: `${source} it was not written since` }
      return { at: 'unknown', evidence: 'the agent does not show messages from before this session' }
    },
  }
}

/**
 * The replay of a resumed conversation: evidence of what the agent received, but no new text of the agent
 * (C4).
 */
interface Replay {
  readonly isOn: boolean
  take(update: AcpUpdate): void
  /** Resolves after a quiet period: some agents answer session/load before the replay ends. */
  over(isWhole: boolean): Promise<void>
}

export function createReplay(isOn: boolean, history: History, clock: Clock, quietMs: number): Replay {
  let count = 0
  return {
    get isOn() {
      return isOn
    },
    take(update) {
      count += 1
      if (update.kind === 'heard') history.replay(update.text)
    },
    async over(isWhole) {
      for (let before = -1; isWhole && before !== count; ) {
        before = count
        await new Promise<void>((resolve) => clock.after(quietMs, resolve))
      }
      if (isWhole) history.replayed()
      isOn = false
    },
  }
}
