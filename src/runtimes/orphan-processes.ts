import { uptime } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { HAS_MARKS, type ProcessFacts, readProcesses } from './process-table.ts'
import { endProcesses, keyOf } from './processes.ts'

/** As processes are told the time of their start. */
const TICKS_PER_SECOND = 100
/** How long before the stop of a turn a command can have been started that nobody was told of. */
const JUST_BEFORE_S = 2
/** When what was around them is gone they are nobody's; that may take a moment. */
const LOOK_AGAIN_MS = [100, 400]
/** Of no process: one stray is ended, and not all that is the agent's. */
const NO_MARK = 'nobody'

/** How it was right before a turn was stopped. */
export interface BeforeStop {
  /** Those of the agent that were nobody's children already: started on purpose, to stay. */
  readonly spared: ReadonlySet<string>
  /** In seconds since the machine started. */
  readonly from: number
}

/**
 * Some programs forget a command when its turn is stopped in the moment in which they start it: what they had put around it is
 * killed, nothing is told, and the command goes on as nobody's child. What this resolves to, called when the turn has ended,
 * ends it. Never rejects: a stop does not fail for it.
 */
export async function watchStrays(
  pane: number,
  warn: (error: unknown) => void,
): Promise<() => Promise<void>> {
  if (!HAS_MARKS) return async () => {}
  try {
    const spared = new Set(outsiders(await readProcesses(), pane).map(keyOf))
    const before = { spared, from: uptime() - JUST_BEFORE_S }
    return () => endStrays(pane, before, uptime(), warn)
  } catch (error) {
    warn(error)
    return async () => {}
  }
}

async function endStrays(
  pane: number,
  before: BeforeStop,
  to: number,
  warn: (error: unknown) => void,
): Promise<void> {
  const known = new Set<string>()
  async function look() {
    for (const stray of findStrays(await readProcesses(), pane, before, to)) {
      if (known.has(keyOf(stray))) continue
      known.add(keyOf(stray))
      const { pid, startedAt } = stray
      endProcesses({ mark: NO_MARK, leader: { pid, startedAt, leavesGroup: true } }).catch(warn)
    }
  }
  async function lookAgain() {
    for (const ms of LOOK_AGAIN_MS) {
      await sleep(ms, undefined, { ref: false })
      await look()
    }
  }
  await look().catch(warn)
  lookAgain().catch(warn)
}

/** Nobody's child since the stop, at the head of a group, and just begun when it came. */
export function findStrays(
  all: readonly ProcessFacts[],
  pane: number,
  { spared, from }: BeforeStop,
  to: number,
): ProcessFacts[] {
  return outsiders(all, pane).filter((one) => {
    const began = Number(one.startedAt) / TICKS_PER_SECOND
    return one.pid === one.group && !spared.has(keyOf(one)) && began >= from && began <= to
  })
}

/** The agent's, by their mark, and yet not of the tree under its pane, whatever marks can be read there. */
function outsiders(all: readonly ProcessFacts[], pane: number): ProcessFacts[] {
  const byPid = new Map(all.map((one) => [one.pid, one]))
  const mark = byPid.get(pane)?.mark
  if (mark === undefined) return []
  const isInside = (one: ProcessFacts) => {
    const seen = new Set<number>()
    for (let at: ProcessFacts | undefined = one; at !== undefined && !seen.has(at.pid); ) {
      if (at.pid === pane) return true
      seen.add(at.pid)
      at = byPid.get(at.parent)
    }
    return false
  }
  return all.filter((one) => one.mark === mark && !one.isZombie && !isInside(one))
}
