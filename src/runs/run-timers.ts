import { type Effect, ON_DUE, type RunEvent, timersOf } from './core/events-and-effects.ts'
import type { Run } from './core/run-state.ts'
import type { NodeTimer } from './run.ts'

/**
 * Timers of one run. The due times are stored with the nodes; the timer table has one row for the run, for the earliest
 * of them or sooner. Clearing a timer does not touch the row, so a thousand agents that end long before their deadlines
 * cost nothing.
 */
export function createRunTimers() {
  const due = new Map<string, { at: number; tell: RunEvent }>()
  /** Due time of the row; undefined: there is none. */
  let armed: number | undefined
  let soonest = Number.POSITIVE_INFINITY

  function set(node: string | null, kind: NodeTimer | 'run', at: number | undefined) {
    const key = `${kind} ${node ?? ''}`
    if (at === undefined) {
      due.delete(key)
      return
    }
    due.set(key, { at, tell: happening(node, kind) })
    soonest = Math.min(soonest, at)
  }

  return {
    take(effect: Effect) {
      if (effect.type === 'set_timer') set(effect.node, effect.kind, effect.at)
      else if (effect.type === 'clear_timer') set(effect.node, effect.kind, undefined)
    },
    /** Replaces all timers by those of the stored run. */
    load({ head, nodes }: Run) {
      due.clear()
      armed = undefined
      if (head.outcome === null && head.deadlineAt !== null) set(null, 'run', head.deadlineAt)
      for (const node of nodes.values()) {
        for (const [kind, at] of Object.entries(timersOf(node))) set(node.name, kind as NodeTimer, at)
      }
    },
    /** Returns the events of all due timers. Called after the row was deleted. */
    ring(now: number): RunEvent[] {
      armed = undefined
      return [...due.values()].filter(({ at }) => at <= now).map(({ tell }) => tell)
    },
    /** Returns the time to which the row must be moved, if it is not early enough. Scans all timers only if there is no row. */
    wanted(): number | undefined {
      const earliest = armed === undefined ? earliestOf(due.values()) : soonest
      return Number.isFinite(earliest) && (armed === undefined || earliest < armed) ? earliest : undefined
    },
    /** Called before the row is written: only timers set from now on count for the next move. */
    claim() {
      soonest = Number.POSITIVE_INFINITY
    },
    /** Called when the row is stored. */
    arm(at: number) {
      armed = at
    },
  }
}

function happening(node: string | null, kind: NodeTimer | 'run'): RunEvent {
  return kind === 'run' ? { type: 'run_timed_out' } : ON_DUE[kind](node!)
}

function earliestOf(clocks: Iterable<{ at: number }>): number {
  let earliest = Number.POSITIVE_INFINITY
  for (const { at } of clocks) earliest = Math.min(earliest, at)
  return earliest
}
