/** Ends commands that a program lost when its turn was interrupted. */
import { uptime } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { endProcesses, HAS_MARKS, type ProcessFacts, processKey, readProcesses } from './processes.ts'

/** Unit of a process's start time in /proc. */
const TICKS_PER_SECOND = 100
/** A command started up to this long before the interrupt may have been forgotten by its program. */
const JUST_BEFORE_S = 2
/** The kernel may need a moment to reparent an orphan after its wrapper was killed. */
const RECHECK_AFTER_MS = [100, 400]
/** Matches no process, so that only the orphan is ended and not all of the agent. */
const NO_MARK = 'none'

/** State right before a turn was interrupted. */
interface ProcessesBeforeStop {
  /** Processes of the agent that were already orphans: started on purpose, to stay. */
  readonly spared: ReadonlySet<string>
  /** Seconds since boot. */
  readonly from: number
}

/**
 * Some programs lose a command if its turn is interrupted while they start it: they kill the wrapper and
 * report nothing, and the command continues as an orphan. Call the returned function after the turn has ended
 * to end such orphans. Never rejects: an interrupt must not fail because of this.
 */
export async function watchOrphans(
  pane: number,
  warn: (error: unknown) => void,
): Promise<() => Promise<void>> {
  if (!HAS_MARKS) return async () => {}
  try {
    const spared = new Set(outsidePaneTree(await readProcesses(), pane).map(processKey))
    const before = { spared, from: uptime() - JUST_BEFORE_S }
    return () => endOrphans(pane, before, uptime(), warn)
  } catch (error) {
    warn(error)
    return async () => {}
  }
}

async function endOrphans(
  pane: number,
  before: ProcessesBeforeStop,
  to: number,
  warn: (error: unknown) => void,
): Promise<void> {
  const known = new Set<string>()
  async function look() {
    for (const stray of findOrphans(await readProcesses(), pane, before, to)) {
      if (known.has(processKey(stray))) continue
      known.add(processKey(stray))
      const { pid, startedAt } = stray
      endProcesses({ mark: NO_MARK, leader: { pid, startedAt, ownsGroupAfterExit: true } }).catch(warn)
    }
  }
  async function lookAgain() {
    for (const ms of RECHECK_AFTER_MS) {
      await sleep(ms, undefined, { ref: false })
      await look()
    }
  }
  await look().catch(warn)
  lookAgain().catch(warn)
}

/** Finds group leaders that became orphans since the interrupt and started right before it. */
function findOrphans(
  all: readonly ProcessFacts[],
  pane: number,
  { spared, from }: ProcessesBeforeStop,
  to: number,
): ProcessFacts[] {
  return outsidePaneTree(all, pane).filter((one) => {
    const began = Number(one.startedAt) / TICKS_PER_SECOND
    return one.pid === one.group && !spared.has(processKey(one)) && began >= from && began <= to
  })
}

/** Processes with the agent's mark that are not in the process tree below its pane. */
function outsidePaneTree(all: readonly ProcessFacts[], pane: number): ProcessFacts[] {
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
