import { type Effect, timersOf } from './core/effect.ts'
import { ON_DUE, type RunEvent } from './core/event.ts'
import type { Run } from './core/run-state.ts'
import type { NodeTimer } from './run.ts'

/**
 * The clocks of one run. Each stands in its node's own row; the table of timers has one row for the run, for the earliest
 * of them or sooner. A clock that is stopped leaves the row alone: a thousand agents that are done long before their
 * time cost nothing.
 */
export function createRunClock() {
  const due = new Map<string, { at: number; tell: RunEvent }>()
  /** What the row says; undefined: there is none. */
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
    /** From what is stored, in place of all that was known. */
    load({ head, nodes }: Run) {
      due.clear()
      armed = undefined
      if (head.outcome === null && head.deadlineAt !== null) set(null, 'run', head.deadlineAt)
      for (const node of nodes.values()) {
        for (const [kind, at] of Object.entries(timersOf(node))) set(node.name, kind as NodeTimer, at)
      }
    },
    /** What is due; the row that said so is gone. */
    ring(now: number): RunEvent[] {
      armed = undefined
      return [...due.values()].filter(({ at }) => at <= now).map(({ tell }) => tell)
    },
    /** To when the row has to be set, where it is not early enough. All clocks are looked at only when there is no row. */
    wanted(): number | undefined {
      const earliest = armed === undefined ? earliestOf(due.values()) : soonest
      return Number.isFinite(earliest) && (armed === undefined || earliest < armed) ? earliest : undefined
    },
    /** What was wanted is about to be written: from now on only what is set meanwhile counts. */
    claim() {
      soonest = Number.POSITIVE_INFINITY
    },
    /** It is on disk. */
    arm(at: number) {
      armed = at
    },
  }
}

export type RunClock = ReturnType<typeof createRunClock>

function happening(node: string | null, kind: NodeTimer | 'run'): RunEvent {
  return kind === 'run' ? { type: 'run_timed_out' } : ON_DUE[kind](node!)
}

function earliestOf(clocks: Iterable<{ at: number }>): number {
  let earliest = Number.POSITIVE_INFINITY
  for (const { at } of clocks) earliest = Math.min(earliest, at)
  return earliest
}
