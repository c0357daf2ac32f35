/** Our tmux server, on a socket of its own, with one session. It outlives the service. */

import type { Clock } from '../clock.ts'
import { type ConnectionOptions, createConnection, type ServerIdentity } from './connection.ts'
import type { Command } from './control.ts'
import type { Block } from './control-lines.ts'
import { createPaneWatch, type PaneListener } from './pane-watch.ts'

export interface Server {
  /** Starts the server or finds it. Throws an AppError when there is no tmux. */
  connect(): Promise<ServerIdentity>
  /** Blocks of the commands that ran. A failed one throws TmuxRefused; rejects with ControlLost when cut off. */
  run(...commands: Command[]): Promise<readonly Block[]>
  listen(pane: string, listener: PaneListener): () => void
  /** When a person was last known to come or go. */
  readonly personSeenAt: number
  close(): Promise<void>
}

export type ServerOptions = Pick<ConnectionOptions, 'socket' | 'command' | 'env' | 'log'> & { clock: Clock }

/** Hints that a pane died or was closed. */
const PANE_HINTS = new Set([
  ...['subscription-changed', 'layout-change', 'window-close', 'unlinked-window-close'],
])
/** Not ours: of that we are told by another name. */
const PERSON_HINTS = new Set(['client-session-changed', 'client-detached'])

export function createServer({ socket, command, env, clock, log }: ServerOptions): Server {
  let personSeenAt = Number.NEGATIVE_INFINITY
  const connection = createConnection({
    ...{ socket, command, env, log },
    onOpen: () => watch.review(),
    onGone(why) {
      for (const listener of [...watch.listeners.values()]) listener.vanished(why)
    },
    onNotification(name, rest) {
      if (PANE_HINTS.has(name)) watch.review()
      else if (name === 'pane-mode-changed') watch.listeners.get(rest)?.stirred()
      else if (PERSON_HINTS.has(name)) {
        personSeenAt = clock.now()
        for (const listener of watch.listeners.values()) listener.stirred()
      }
    },
  })
  const watch = createPaneWatch(connection, log)

  return {
    connect: connection.connect,
    run: (...commands) => connection.run(commands),
    listen(pane, listener) {
      watch.listeners.set(pane, listener)
      // It may have died before we listened.
      watch.review()
      return () => {
        if (watch.listeners.get(pane) === listener) watch.listeners.delete(pane)
      }
    },
    get personSeenAt() {
      return personSeenAt
    },
    close: connection.close,
  }
}
