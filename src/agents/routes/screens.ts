import { setTimeout } from 'node:timers/promises'
import type { Session, TerminalSnapshot } from '../../runtimes/runtime.ts'

/** What an agent's terminal showed when it was looked at. The same object for as long as nothing changes. */
export interface Look {
  readonly session: string
  readonly canTakeOver: boolean
  readonly picture: TerminalSnapshot
}

interface ScreenReader {
  /** After every look, also one that found nothing new: whoever reads asks then whether it still may. */
  onLook(look: Look): void
  /** It cannot be looked at. No look follows. */
  onFault(error: unknown): void
}

/** Looks at terminals while somebody watches them: once for all who watch the same one. */
export interface Screens {
  /** Begins with what is known of it. The looking ends with its last reader. */
  watch(agent: string, reader: ScreenReader): () => void
}

interface Watched {
  readonly readers: Set<ScreenReader>
  look: Look | undefined
  stop(): void
}

/** While it changes, and while it does not. */
const LIVELY_MS = 80
const CALM_MS = 400
const CALM_AFTER = 12
/** Of a session that has no terminal but tells what it showed. */
const TEXT_ROWS = 200

export function createScreens(sessionOf: (agent: string) => Session | undefined): Screens {
  const watched = new Map<string, Watched>()

  function begin(agent: string): Watched {
    const stopped = new AbortController()
    const one: Watched = { readers: new Set(), look: undefined, stop: () => stopped.abort() }
    watched.set(agent, one)
    void keepLooking(agent, one, stopped.signal)
    return one
  }

  async function keepLooking(agent: string, one: Watched, stopped: AbortSignal) {
    let quiet = 0
    while (!stopped.aborted) {
      let look: Look
      try {
        look = await lookAt(sessionOf(agent))
      } catch (error) {
        end(agent, one)
        for (const reader of [...one.readers]) reader.onFault(error)
        return
      }
      const isNew = !isSame(one.look, look)
      one.look = isNew ? look : one.look
      quiet = isNew ? 0 : quiet + 1
      for (const reader of [...one.readers]) reader.onLook(one.look!)
      await pause(quiet > CALM_AFTER ? CALM_MS : LIVELY_MS, stopped)
    }
  }

  function end(agent: string, one: Watched) {
    one.stop()
    // Another may have begun since.
    if (watched.get(agent) === one) watched.delete(agent)
  }

  return {
    watch(agent, reader) {
      const one = watched.get(agent) ?? begin(agent)
      one.readers.add(reader)
      if (one.look !== undefined) reader.onLook(one.look)
      return () => {
        one.readers.delete(reader)
        if (one.readers.size === 0) end(agent, one)
      }
    },
  }
}

async function lookAt(session: Session | undefined): Promise<Look> {
  const picture = await pictureOf(session)
  return {
    session: session?.state ?? 'exited',
    canTakeOver: session?.takeOver !== undefined,
    picture,
  }
}

async function pictureOf(session: Session | undefined): Promise<TerminalSnapshot> {
  if (session?.snapshot !== undefined) return session.snapshot()
  const text = (await session?.screen?.(TEXT_ROWS)) ?? ''
  return { columns: 0, rows: text.split('\n'), cursor: undefined }
}

function isSame(before: Look | undefined, now: Look): boolean {
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
