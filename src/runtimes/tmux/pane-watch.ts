/** Detects dead and closed panes, from tmux notifications and one listing of all panes. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../../base/log.ts'
import { IN_SESSION, type TmuxConnection } from './connection.ts'
import { ControlLost } from './control.ts'

/** Gives tmux time to handle the signal on a machine under load. */
const WAKE_TIMES = 5
const WAKE_MS = 10

export interface PaneListener {
  /** The pane's process ended. */
  died(how: string): void
  /** The pane no longer exists. */
  vanished(how: string): void
  /** Something changed that may unblock a waiting paste. */
  changed(): void
}

interface PaneWatch {
  readonly listeners: Map<string, PaneListener>
  /** Lists all panes, once for all requests made meanwhile. */
  review(): void
}

export function createPaneWatch(connection: Pick<TmuxConnection, 'run' | 'identity'>, log: Log): PaneWatch {
  const listeners = new Map<string, PaneListener>()
  let state: 'resting' | 'looking' | 'to look again' = 'resting'

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
    // Panes opened meanwhile are missing from the list but are not gone.
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
