/** Our tmux server, on its own socket, with one session. It outlives the service. */

import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import {
  IN_SESSION,
  openTmuxConnection,
  type TmuxConnection,
  type TmuxConnectionOptions,
} from './connection.ts'
import { ControlLost, type TmuxCommand } from './control.ts'

export type TmuxServer = ReturnType<typeof openTmuxServer>

type TmuxServerOptions = Pick<TmuxConnectionOptions, 'socket' | 'command' | 'env' | 'log'> & { clock: Clock }

/** Notifications that may mean that a pane died or was closed. */
const PANE_HINTS = new Set([
  ...['subscription-changed', 'layout-change', 'window-close', 'unlinked-window-close'],
])
/** Sent for other clients only; ours has a different notification. */
const PERSON_HINTS = new Set(['client-session-changed', 'client-detached'])

export function openTmuxServer({ socket, command, env, clock, log }: TmuxServerOptions) {
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
    run: (...commands: TmuxCommand[]) => connection.run(commands),
    /** Returns the function that ends it. */
    listen(pane: string, listener: PaneListener): () => void {
      watch.listeners.set(pane, listener)
      // The server may have died before we listened.
      watch.review()
      return () => {
        if (watch.listeners.get(pane) === listener) watch.listeners.delete(pane)
      }
    },
    /** When a person's client last attached or detached. */
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

/** Gives tmux time to handle the signal on a machine under load. */
const WAKE_TIMES = 5
const WAKE_MS = 10

interface PaneListener {
  /** The pane's process ended. */
  died(how: string): void
  /** The pane no longer exists. */
  vanished(how: string): void
  /** Something changed that may unblock a waiting paste. */
  changed(): void
}

/** Detects dead and closed panes, from tmux notifications and one listing of all panes. */
function createPaneWatch(connection: Pick<TmuxConnection, 'run' | 'identity'>, log: Log) {
  const listeners = new Map<string, PaneListener>()
  let state: 'resting' | 'looking' | 'to look again' = 'resting'

  /** Lists all panes; requests during a listing lead to one more. */
  function review() {
    if (state !== 'resting') {
      state = 'to look again'
      return
    }
    state = 'looking'
    look()
      .catch((error: unknown) => {
        if (!(error instanceof ControlLost)) log.error({ err: error }, 'tmux could not list its panes')
      })
      .finally(() => {
        const isWanted = state === 'to look again'
        state = 'resting'
        if (isWanted) review()
      })
  }

  async function look() {
    if (listeners.size === 0) return
    // Panes opened after the request are missing from the list but are not gone.
    const asked = [...listeners]
    let panes = await listPanes()
    for (let woken = 0; woken < WAKE_TIMES && [...panes.values()].some(isEndUnknown); woken++) {
      wakeServer()
      await sleep(WAKE_MS)
      panes = await listPanes()
    }
    for (const [id, listener] of asked) {
      const pane = panes.get(id)
      if (listeners.get(id) !== listener) continue
      if (pane === undefined) listener.vanished('its pane was closed')
      else if (pane.isDead) listener.died(pane.how ?? 'its process ended')
    }
  }

  async function listPanes() {
    const format = '#{pane_id} #{pane_dead} #{pane_dead_status} #{pane_dead_signal}'
    const [list] = await connection.run([['list-panes', '-s', '-t', IN_SESSION, '-F', format]])
    return new Map(
      list!.lines.map((line) => {
        const [id, dead, status, signal] = line.split(' ')
        return [id!, { isDead: dead === '1', how: describeEnd(status, signal) }]
      }),
    )
  }

  /**
   * tmux built with utempter loses SIGCHLD if it arrives while utempter runs (seen with 3.3a): the pane is
   * dead, but its hook does not run and its exit status is never read. Any later SIGCHLD makes tmux check
   * again.
   */
  function wakeServer() {
    try {
      if (connection.identity !== undefined) process.kill(connection.identity.pid, 'SIGCHLD')
    } catch {
      // The server is gone, or we may not signal it; the exit status stays unknown.
    }
  }

  return { listeners, review }
}

const isEndUnknown = (pane: { isDead: boolean; how: string | undefined }) =>
  pane.isDead && pane.how === undefined

function describeEnd(status: string | undefined, signal: string | undefined): string | undefined {
  if (signal) return `it was killed by signal ${signal}`
  return status ? `it exited with ${status}` : undefined
}
