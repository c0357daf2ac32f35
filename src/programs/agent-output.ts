import { setTimeout as sleep } from 'node:timers/promises'
import type { AgentText, SessionPort } from '../runtimes/runtime.ts'
import type { FollowerLog } from './line-follower.ts'
import { createSeenIds } from './seen-ids.ts'

interface AgentOutputOptions<Position> {
  readonly onText: SessionPort['onText']
  /** Everything up to this position was processed. */
  onProcessed(position: Position): void | Promise<void>
  readonly log: FollowerLog
}

const RETRY_MS = 1000
/** A text repeats when its message changes, and when messages are read again after a lost connection. */
const REMEMBERED_TEXTS = 1000

/**
 * Passes the agent's text to the engine, at once and in order. A text can be open for long: its response may
 * wait for the end of the turn, which is read from the same source, so the next text must not wait for it. But
 * the saved position must not pass it either, or a crash would lose it.
 */
export function createAgentOutput<Position>({ onText, onProcessed, log }: AgentOutputOptions<Position>) {
  const isNew = createSeenIds(REMEMBERED_TEXTS)
  const open: { readonly position: Position; isDone: boolean }[] = []
  const closing = new AbortController()

  /** The store may be unavailable for a while. A repeated text acts once, by its key (C25). */
  async function retry(act: () => void | Promise<void>) {
    for (let tries = 0; !closing.signal.aborted; tries++) {
      try {
        return await act()
      } catch (error) {
        if (tries === 0) log.warn({ err: error }, "the agent's text could not be processed; trying again")
        await sleep(RETRY_MS, undefined, { signal: closing.signal, ref: false }).catch(() => {})
      }
    }
  }

  async function process(agentText: AgentText, position: Position) {
    const entry = { position, isDone: false }
    open.push(entry)
    await retry(() => onText(agentText))
    if (closing.signal.aborted) return
    entry.isDone = true
    const isStillOpen = open.findIndex(({ isDone }) => !isDone)
    const done = open.splice(0, isStillOpen < 0 ? open.length : isStillOpen)
    if (done.length > 0) await retry(() => onProcessed(done.at(-1)!.position))
  }

  return {
    /** The same key is passed on once. */
    say(agentText: AgentText & { readonly key: string }, position: Position) {
      if (isNew(agentText.key)) void process(agentText, position)
    },
    /** Position of the oldest text that is not processed yet; undefined if all is processed. */
    get oldestOpen() {
      return open[0]?.position
    },
    close: () => closing.abort(),
  }
}

/** Saves the session's state for a restart, as it is at the time of writing. */
export function createStateSaver(
  port: Pick<SessionPort, 'saveState'>,
  log: FollowerLog,
  current: () => unknown,
) {
  let isDue = false
  let closed = false

  const save = () =>
    port.saveState(current()).then(
      () => true,
      (error: unknown) => {
        log.warn({ err: error }, 'a position could not be saved')
        return false
      },
    )

  return {
    /** Saves soon, once for many changes; a line's position counts after the line was processed. */
    soon() {
      if (isDue || closed) return
      isDue = true
      setImmediate(() => {
        isDue = false
        if (!closed) void save()
      })
    },
    /** Saves now; resolves with whether that succeeded. */
    now: save,
    /** Saves now, for the last time. */
    async close(): Promise<void> {
      if (closed) return
      await save()
      closed = true
    },
  }
}
