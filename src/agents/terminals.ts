import { setTimeout } from 'node:timers/promises'
import type { Principal } from '../base/agent.ts'
import type { Clock } from '../base/clock.ts'
import { AppError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Session, TerminalKeyboard, TerminalSnapshot } from '../runtimes/runtime.ts'
import type { Store } from '../store/store.ts'
import type { Sessions } from './sessions.ts'

/** A snapshot of an agent's terminal. The same object as long as nothing changes. */
export interface ScreenSnapshot {
  readonly session: string
  readonly canTakeOver: boolean
  readonly picture: TerminalSnapshot
}

interface ScreenReader {
  /** Called after every poll, even without changes, so that the reader rechecks its permission. */
  onSnapshot(snapshot: ScreenSnapshot): void
  /** The terminal cannot be read. No snapshot follows. */
  onFault(error: unknown): void
}

/** Polls terminals while they have readers; readers of the same terminal share one poll. */
export interface Screens {
  /** Starts with the last snapshot. Polling ends with the last reader. */
  watch(agent: string, reader: ScreenReader): () => void
}

interface WatchedScreen {
  readonly readers: Set<ScreenReader>
  snapshot: ScreenSnapshot | undefined
  stop(): void
}

/** The poll interval while the terminal changes. */
const BUSY_POLL_MS = 80
/** The poll interval after IDLE_AFTER polls without changes. */
const IDLE_POLL_MS = 400
const IDLE_AFTER = 12
/** Lines shown for a session without a terminal that only reports its output. */
const TEXT_ROWS = 200

export function createScreens(sessionOf: (agent: string) => Session | undefined): Screens {
  const watched = new Map<string, WatchedScreen>()

  function begin(agent: string): WatchedScreen {
    const stopped = new AbortController()
    const one: WatchedScreen = { readers: new Set(), snapshot: undefined, stop: () => stopped.abort() }
    watched.set(agent, one)
    void keepPolling(agent, one, stopped.signal)
    return one
  }

  async function keepPolling(agent: string, one: WatchedScreen, stopped: AbortSignal) {
    let quiet = 0
    while (!stopped.aborted) {
      let snapshot: ScreenSnapshot
      try {
        snapshot = await takeSnapshot(sessionOf(agent))
      } catch (error) {
        end(agent, one)
        for (const reader of [...one.readers]) reader.onFault(error)
        return
      }
      const isNew = !isSame(one.snapshot, snapshot)
      one.snapshot = isNew ? snapshot : one.snapshot
      quiet = isNew ? 0 : quiet + 1
      for (const reader of [...one.readers]) reader.onSnapshot(one.snapshot!)
      await pause(quiet > IDLE_AFTER ? IDLE_POLL_MS : BUSY_POLL_MS, stopped)
    }
  }

  function end(agent: string, one: WatchedScreen) {
    one.stop()
    // A new watch may have begun since.
    if (watched.get(agent) === one) watched.delete(agent)
  }

  return {
    watch(agent, reader) {
      const one = watched.get(agent) ?? begin(agent)
      one.readers.add(reader)
      if (one.snapshot !== undefined) reader.onSnapshot(one.snapshot)
      return () => {
        one.readers.delete(reader)
        if (one.readers.size === 0) end(agent, one)
      }
    },
  }
}

async function takeSnapshot(session: Session | undefined): Promise<ScreenSnapshot> {
  const picture = await captureTerminal(session)
  return {
    session: session?.state ?? 'exited',
    canTakeOver: session?.takeOver !== undefined,
    picture,
  }
}

async function captureTerminal(session: Session | undefined): Promise<TerminalSnapshot> {
  if (session?.snapshot !== undefined) return session.snapshot()
  const text = (await session?.screen?.(TEXT_ROWS)) ?? ''
  return { columns: 0, rows: text.split('\n'), cursor: undefined }
}

function isSame(before: ScreenSnapshot | undefined, now: ScreenSnapshot): boolean {
  if (before?.session !== now.session || before.canTakeOver !== now.canTakeOver) return false
  const [one, other] = [before.picture, now.picture]
  return (
    one.columns === other.columns &&
    one.cursor?.x === other.cursor?.x &&
    one.cursor?.y === other.cursor?.y &&
    one.rows.length === other.rows.length &&
    one.rows.every((row, index) => row === other.rows[index])
  )
}

function pause(ms: number, stopped: AbortSignal): Promise<void> {
  return setTimeout(ms, undefined, { signal: stopped }).catch(() => {})
}

/** A person acting with one session or token. The same person in another session holds nothing. */
export interface TerminalHolder {
  readonly name: string
  readonly tokenId: string | undefined
}

/** A second session of the same person is a different holder. */
export function terminalHolder(name: string, { tokenId }: Principal): TerminalHolder {
  return { name, tokenId }
}

function isSameHolder(one: TerminalHolder, other: TerminalHolder): boolean {
  return one.name === other.name && one.tokenId === other.tokenId
}

/** Tracks which person has taken over which terminal from the control room; one session at a time. */
export interface TerminalHolders {
  holder(agent: string): TerminalHolder | undefined
  take(agent: string, by: TerminalHolder): Promise<void>
  /** A person may also release a terminal that they hold in another session. */
  release(agent: string, by: TerminalHolder): Promise<void>
  /** The keyboard; throws unless `by` holds the terminal. */
  keyboard(agent: string, by: TerminalHolder): TerminalKeyboard
  /** Counts the windows that show the terminal; closing a holder's last one releases it. */
  watch(agent: string, by: TerminalHolder, changed: () => void): () => void
  close(): void
}

interface TakenTerminal {
  by: TerminalHolder
  session: Session
  keyboard: TerminalKeyboard
  cancelIdle(): void
}

/** Release after this long without a key: the person has left, and messages are waiting. */
const IDLE_MS = 10 * 60_000
/** Time for a page to reload or reconnect before its terminal is released. */
const GRACE_MS = 10_000

interface TerminalHoldersOptions {
  sessions: Pick<Sessions, 'session'>
  store: Store
  clock: Clock
  log: Log
}

export function createTerminalHolders(options: TerminalHoldersOptions): TerminalHolders {
  const { sessions, store, clock, log } = options
  const held = new Map<string, TakenTerminal>()
  const watchers = new Map<string, Set<{ by: TerminalHolder; changed: () => void }>>()

  function current(agent: string): TakenTerminal | undefined {
    const found = held.get(agent)
    if (found === undefined || sessions.session(agent) === found.session) return found
    // The agent was restarted, so this is a different terminal.
    removeHolder(agent)
    return undefined
  }

  function removeHolder(agent: string) {
    const found = held.get(agent)
    if (found === undefined) return
    held.delete(agent)
    found.cancelIdle()
    found.keyboard.release()
    notifyWatchers(agent)
  }

  function notifyWatchers(agent: string) {
    for (const { changed } of watchers.get(agent) ?? []) changed()
  }

  async function releaseHeld(agent: string, { name, tokenId }: TerminalHolder, why: string) {
    const now = current(agent)
    if (now === undefined || !isSameHolder(now.by, { name, tokenId })) return
    removeHolder(agent)
    await record('released', agent, name, `${name} released the terminal of ${agent}${why}`)
  }

  function releaseInBackground(agent: string, by: TerminalHolder, why: string) {
    releaseHeld(agent, by, why).catch((error: unknown) =>
      log.error({ agent, err: error }, 'could not record the release of a terminal'),
    )
  }

  async function record(what: 'taken' | 'released', agent: string, by: string, text: string) {
    await store.write((tx) =>
      tx.audit({
        type: `terminal.${what}`,
        class: 'internal',
        actor: by,
        subject: agent,
        text,
        data: { agent },
      }),
    )
  }

  function startIdle(agent: string, by: TerminalHolder) {
    return clock.after(IDLE_MS, () => releaseInBackground(agent, by, ' after ten minutes without a key'))
  }

  return {
    holder: (agent) => current(agent)?.by,
    async take(agent, by) {
      const session = sessions.session(agent)
      if (session?.takeOver === undefined) throw noTerminal(agent)
      const now = current(agent)
      if (now !== undefined && isSameHolder(now.by, by)) return
      if (now !== undefined) throw taken(agent, now.by.name)
      held.set(agent, { by, session, keyboard: session.takeOver(by.name), cancelIdle: startIdle(agent, by) })
      notifyWatchers(agent)
      await record('taken', agent, by.name, `${by.name} took over the terminal of ${agent}; deliveries wait`)
    },
    async release(agent, by) {
      const now = current(agent)
      if (now?.by.name === by.name) await releaseHeld(agent, now.by, '')
    },
    keyboard(agent, by) {
      const now = current(agent)
      if (now === undefined || !isSameHolder(now.by, by)) throw notHeld(agent)
      now.cancelIdle()
      now.cancelIdle = startIdle(agent, by)
      return now.keyboard
    },
    watch(agent, by, changed) {
      const one = { by, changed }
      const all = watchers.get(agent) ?? new Set()
      watchers.set(agent, all.add(one))
      return () => {
        all.delete(one)
        const isLast = () => ![...all].some((other) => isSameHolder(other.by, by))
        const now = held.get(agent)
        if (now !== undefined && isSameHolder(now.by, by) && isLast()) {
          clock.after(GRACE_MS, () => {
            if (isLast()) releaseInBackground(agent, by, ' by closing its window')
          })
        }
      }
    },
    close() {
      for (const agent of [...held.keys()]) removeHolder(agent)
    },
  }
}

function noTerminal(agent: string): AppError {
  return new AppError('CONFLICT', `${agent} has no terminal to take over`, {
    hint: `Start it first, or send it a message: orc send ${agent} TEXT.`,
  })
}

function taken(agent: string, by: string): AppError {
  return new AppError('CONFLICT', `${by} has taken over the terminal of ${agent}`, {
    hint: 'Ask them to release it; otherwise it becomes free ten minutes after their last key.',
  })
}

function notHeld(agent: string): AppError {
  return new AppError('CONFLICT', `Take over the terminal of ${agent} before you type into it`, {
    hint: 'Otherwise your keys could end up in a message that is being delivered.',
  })
}
