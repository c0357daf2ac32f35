import { uptime } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { HAS_MARKS, type ProcessFacts, readProcesses } from '../../runtimes/process-table.ts'

/** As processes are told the time of their start. */
const TICKS_PER_SECOND = 100
/** How long before the stop of a turn a command can have been started that Codex has not told of. */
const JUST_BEFORE_S = 2
/** When their parent is gone they are nobody's; that may take it a moment. */
const LOOK_AGAIN_MS = [100, 400]

export interface Window {
  /** In seconds since the machine started. */
  readonly from: number
  readonly to: number
}

/** Opened right before a turn is stopped, closed when it has ended. */
export function openWindow(): () => Window {
  const from = uptime() - JUST_BEFORE_S
  return () => ({ from, to: uptime() })
}

/**
 * Ends the command that Codex forgets when its turn is stopped in the moment in which it starts it: it kills what it had put
 * around it, tells of nothing, and the command goes on as nobody's child. One that it knows is a child of its own.
 */
export async function endStrays(pane: number, window: Window): Promise<void> {
  if (!HAS_MARKS) return
  await signalStrays(pane, window, 'SIGTERM')
  void lookAgain(pane, window)
}

async function lookAgain(pane: number, window: Window) {
  for (const ms of LOOK_AGAIN_MS) {
    await sleep(ms, undefined, { ref: false })
    await signalStrays(pane, window, 'SIGKILL').catch(() => {})
  }
}

async function signalStrays(pane: number, window: Window, signal: NodeJS.Signals) {
  for (const { group } of findStrays(await readProcesses(), pane, window)) {
    try {
      process.kill(-group, signal)
    } catch {
      // It has ended meanwhile.
    }
  }
}

/** Of the agent, by its mark; at the head of a group; of no parent of the agent's; and just begun when the turn was stopped. */
export function findStrays(all: readonly ProcessFacts[], pane: number, { from, to }: Window): ProcessFacts[] {
  const mark = all.find(({ pid }) => pid === pane)?.mark
  if (mark === undefined) return []
  const own = new Map(all.filter((one) => one.mark === mark).map((one) => [one.pid, one]))
  return [...own.values()].filter(({ pid, parent, group, isZombie, startedAt }) => {
    const began = Number(startedAt) / TICKS_PER_SECOND
    const isHead = pid === group && pid !== pane && !isZombie
    return isHead && !own.has(parent) && began >= from && began <= to
  })
}
