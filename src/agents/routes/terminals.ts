import { AppError } from '../../base/errors.ts'
import type { Engine } from '../../engine.ts'
import type { Session, TerminalKeyboard } from '../../runtimes/runtime.ts'

/** A person, by the session or the token they act with: the same person elsewhere has not taken over anything. */
export interface Hand {
  readonly name: string
  readonly token: string
}

/** Who has taken over which terminal, from the control room. One session at a time. */
export interface Terminals {
  holder(agent: string): Hand | undefined
  take(agent: string, by: Hand): Promise<void>
  /** A person may also let go of what they hold elsewhere. */
  release(agent: string, by: Hand): Promise<void>
  /** The keyboard, for the one who holds it. */
  keyboard(agent: string, by: Hand): TerminalKeyboard
  /** Counts the windows that show it: when a holder's last one is closed, it is let go. */
  watch(agent: string, by: Hand, changed: () => void): () => void
  close(): void
}

interface Held {
  by: Hand
  session: Session
  keyboard: TerminalKeyboard
  cancelIdle(): void
}

/** Nobody types for so long: whoever took it over has gone away, and messages wait. */
const IDLE_MS = 10 * 60_000
/** A page that is loaded again, or a connection that comes back. */
const GRACE_MS = 10_000

export function createTerminals({ sessions, store, clock, log }: Engine): Terminals {
  const held = new Map<string, Held>()
  const watchers = new Map<string, Set<{ by: Hand; changed: () => void }>>()

  function current(agent: string): Held | undefined {
    const found = held.get(agent)
    if (found === undefined || sessions.session(agent) === found.session) return found
    // Another session has another terminal.
    letGo(agent)
    return undefined
  }

  function letGo(agent: string) {
    const found = held.get(agent)
    if (found === undefined) return
    held.delete(agent)
    found.cancelIdle()
    found.keyboard.release()
    tell(agent)
  }

  function tell(agent: string) {
    for (const { changed } of watchers.get(agent) ?? []) changed()
  }

  async function drop(agent: string, { name, token }: Hand, why: string) {
    if (current(agent)?.by.token !== token) return
    letGo(agent)
    await note('released', agent, name, `${name} let go of the terminal of ${agent}${why}`)
  }

  function dropLater(agent: string, by: Hand, why: string) {
    drop(agent, by, why).catch((error: unknown) =>
      log.error({ agent, err: error }, 'could not be written down'),
    )
  }

  async function note(what: 'taken' | 'released', agent: string, by: string, text: string) {
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

  function startIdle(agent: string, by: Hand) {
    return clock.after(IDLE_MS, () => dropLater(agent, by, ', without a key for ten minutes'))
  }

  return {
    holder: (agent) => current(agent)?.by,
    async take(agent, by) {
      const session = sessions.session(agent)
      if (session?.takeOver === undefined) throw noTerminal(agent)
      const now = current(agent)
      if (now?.by.token === by.token) return
      if (now !== undefined) throw taken(agent, now.by.name)
      held.set(agent, { by, session, keyboard: session.takeOver(by.name), cancelIdle: startIdle(agent, by) })
      tell(agent)
      await note('taken', agent, by.name, `${by.name} took over the terminal of ${agent}; deliveries wait`)
    },
    async release(agent, by) {
      const now = current(agent)
      if (now?.by.name === by.name) await drop(agent, now.by, '')
    },
    keyboard(agent, by) {
      const now = current(agent)
      if (now?.by.token !== by.token) throw notHeld(agent)
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
        const isLast = () => ![...all].some((other) => other.by.token === by.token)
        if (held.get(agent)?.by.token === by.token && isLast()) {
          clock.after(GRACE_MS, () => {
            if (isLast()) dropLater(agent, by, ', by closing its window')
          })
        }
      }
    },
    close() {
      for (const agent of [...held.keys()]) letGo(agent)
    },
  }
}

function noTerminal(agent: string): AppError {
  return new AppError('CONFLICT', `${agent} has no terminal that could be taken over`, {
    hint: `Start it first, or write to it: orc send ${agent} TEXT.`,
  })
}

function taken(agent: string, by: string): AppError {
  return new AppError('CONFLICT', `${by} has taken over the terminal of ${agent}`, {
    hint: 'Ask them to let go; it is free ten minutes after their last key.',
  })
}

function notHeld(agent: string): AppError {
  return new AppError('CONFLICT', `Take over the terminal of ${agent} before you type into it`, {
    hint: 'Until then what you type could end up in a message that is being delivered.',
  })
}
