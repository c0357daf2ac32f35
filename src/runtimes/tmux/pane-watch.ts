/** Knows when panes die or are closed, from tmux's hints and one look at all of them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Connection, IN_SESSION } from './connection.ts'
import { ControlLost } from './control.ts'
import type { Log } from './log.ts'

/** For tmux to hear the signal and look, on a machine under load. */
const WAKE_TIMES = 5
const WAKE_MS = 10

export interface PaneListener {
  /** Its process ended, and how. */
  died(how: string): void
  /** The pane is not there any more. */
  vanished(how: string): void
  /** Something happened that may let a waiting paste through. */
  stirred(): void
}

export interface PaneWatch {
  readonly listeners: Map<string, PaneListener>
  /** Looks at all panes, once for however many ask meanwhile. */
  review(): void
}

export function createPaneWatch(connection: Pick<Connection, 'run' | 'identity'>, log: Log): PaneWatch {
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
        if (!(error instanceof ControlLost)) log.error({ err: error }, 'tmux does not say how its panes are')
      })
      .finally(() => {
        const isWanted = state === 'to look again'
        state = 'resting'
        if (isWanted) review()
      })
  }

  async function look() {
    if (listeners.size === 0) return
    // A pane that is opened meanwhile is not on the list, and is not gone either.
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
   * tmux built with utempter loses the signal that its child ended when that comes while utempter runs (seen with
   * 3.3a): the pane is dead, its hook does not run, and how it ended is never read. Any later such signal makes tmux
   * look.
   */
  function wakeServer() {
    try {
      if (connection.identity !== undefined) process.kill(connection.identity.pid, 'SIGCHLD')
    } catch {
      // It is gone, or not ours to signal: then we know less of how the process ended.
    }
  }

  return { listeners, review }
}

const isEndUnknown = (pane: { isDead: boolean; how: string | undefined }) =>
  pane.isDead && pane.how === undefined

function describeEnd(status: string | undefined, signal: string | undefined): string | undefined {
  if (signal) return `it was ended by signal ${signal}`
  return status ? `it exited with ${status}` : undefined
}
