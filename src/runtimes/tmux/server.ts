/** Our tmux server, on its own socket, with one session. It outlives the service. */
import type { Clock } from '../../base/clock.ts'
import { openTmuxConnection, type ServerIdentity, type TmuxConnectionOptions } from './connection.ts'
import type { Block, TmuxCommand } from './control.ts'
import { createPaneWatch, type PaneListener } from './pane-watch.ts'

export interface TmuxServer {
  /** Starts the server or attaches to it. Throws an AppError if tmux is missing. */
  connect(): Promise<ServerIdentity>
  /**
   * Returns the output blocks of the commands. A failed command throws TmuxRefused; a lost connection rejects
   * with ControlLost.
   */
  run(...commands: TmuxCommand[]): Promise<readonly Block[]>
  listen(pane: string, listener: PaneListener): () => void
  /** When a person's client last attached or detached. */
  readonly clientChangedAt: number
  close(): Promise<void>
}

type TmuxServerOptions = Pick<TmuxConnectionOptions, 'socket' | 'command' | 'env' | 'log'> & { clock: Clock }

/** Notifications that may mean that a pane died or was closed. */
const PANE_HINTS = new Set([
  ...['subscription-changed', 'layout-change', 'window-close', 'unlinked-window-close'],
])
/** Sent for other clients only; ours has a different notification. */
const PERSON_HINTS = new Set(['client-session-changed', 'client-detached'])

export function openTmuxServer({ socket, command, env, clock, log }: TmuxServerOptions): TmuxServer {
  let personSeenAt = Number.NEGATIVE_INFINITY
  const connection = openTmuxConnection({
    ...{ socket, command, env, log },
    onOpen: () => watch.review(),
    onGone(why) {
      for (const listener of [...watch.listeners.values()]) listener.vanished(why)
    },
    onNotification(name, rest) {
      if (PANE_HINTS.has(name)) watch.review()
      else if (name === 'pane-mode-changed') watch.listeners.get(rest)?.changed()
      else if (PERSON_HINTS.has(name)) {
        personSeenAt = clock.now()
        for (const listener of watch.listeners.values()) listener.changed()
      }
    },
  })
  const watch = createPaneWatch(connection, log)

  return {
    connect: connection.connect,
    run: (...commands) => connection.run(commands),
    listen(pane, listener) {
      watch.listeners.set(pane, listener)
      // The server may have died before we listened.
      watch.review()
      return () => {
        if (watch.listeners.get(pane) === listener) watch.listeners.delete(pane)
      }
    },
    get clientChangedAt() {
      return personSeenAt
    },
    close: connection.close,
  }
}

/** Variables that the tmux server inherits from the service, for people who open a window there. */
export const SERVER_VARIABLES = [
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LANGUAGE', 'TZ', 'TMPDIR', 'SSH_AUTH_SOCK'],
  ...['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'ALL_PROXY'],
  ...['http_proxy', 'https_proxy', 'no_proxy', 'all_proxy'],
  ...['SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_EXTRA_CA_CERTS'],
  // A person's `tmux -L` must look for the socket where ours created it.
  'TMUX_TMPDIR',
] as const
const VARIABLE_PREFIXES = /^(?:LC_|XDG_)/

/** Present in every terminfo and good for 256 colours in tmux. */
export const TERM = 'screen-256color'

/** Contains no secrets: anyone on the server can read it, and it outlives the service. */
export function serverEnvironment(own: Readonly<NodeJS.ProcessEnv>): Record<string, string> {
  const names: readonly string[] = SERVER_VARIABLES
  const passed: Record<string, string> = {}
  for (const [name, value] of Object.entries(own)) {
    if (value !== undefined && (names.includes(name) || VARIABLE_PREFIXES.test(name))) passed[name] = value
  }
  if (!passed.LANG && !passed.LC_ALL) passed.LANG = 'C.UTF-8'
  return { ...passed, TERM }
}
