/** Finds all processes of an agent and ends them so that none is left. */
import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '../base/errors.ts'
import { isAlive, type ProcessFacts, readProcesses } from './process-table.ts'

/** Identifies the processes of one launch. */
export interface AgentProcesses {
  /** Inherited by everything the agent starts, unless removed on purpose. */
  readonly mark: string
  /** The leader of the agent's process group. */
  readonly leader?: GroupLeader | undefined
}

export interface GroupLeader {
  readonly pid: number
  /**
   * From `processStartedAt`; later, or after a reboot, the pid may belong to another process. Undefined: it
   * has ended.
   */
  readonly startedAt: string | undefined
  /**
   * The leader ended just now, so its group number still belongs to the agent; never true for a leader read
   * from saved state.
   */
  readonly ownsGroupAfterExit?: boolean
}

const GRACE_MS = 3000
const KILL_MS = 3000
const CHECK_EVERY_MS = 20

/**
 * Ends the agent's process group, its descendants and everything with its mark (daemons leave the group and
 * the tree but keep the environment). Sends SIGTERM first, then SIGKILL. Resolves once all are gone and
 * throws if one stays. Uses real time, as processes do.
 */
export async function endProcesses(agent: AgentProcesses, graceMs = GRACE_MS): Promise<void> {
  const known = new Set<string>()
  for (const [ask, withinMs] of [['SIGTERM', graceMs] as const, ['SIGKILL', KILL_MS] as const]) {
    const deadline = performance.now() + withinMs
    do {
      // Repeat, because processes may start others while they end.
      const running = await findProcesses(agent, known)
      if (running.length === 0) return
      send(ask, running)
      // A stopped process would not receive the first signal.
      send('SIGCONT', running)
      await waitUntilGone(running, deadline)
    } while (performance.now() < deadline)
  }
  const pids = (await findProcesses(agent, known)).map(({ pid }) => pid)
  if (pids.length === 0) return
  throw new AppError('RUNTIME_FAILED', `${pids.length} of its processes did not end`, {
    hint: `Inspect them with: ps -p ${pids.join(',')}`,
    data: { pids },
  })
}

/** `known` remembers members: a child whose parent has ended can no longer be recognised by descent. */
export async function findProcesses(
  { mark, leader }: AgentProcesses,
  known = new Set<string>(),
): Promise<ProcessFacts[]> {
  const all = await readProcesses()
  const group = groupOf(leader, all, known)
  const others = all.filter((one) => !one.isZombie && one.pid !== process.pid)
  const found = new Map<number, ProcessFacts>()
  for (const one of others) {
    const isLeader = one.pid === leader?.pid && one.startedAt === leader.startedAt
    if (isLeader || one.mark === mark || one.group === group || known.has(processKey(one)))
      found.set(one.pid, one)
  }
  for (let before = -1; before !== found.size; ) {
    before = found.size
    for (const one of others) if (found.has(one.parent)) found.set(one.pid, one)
  }
  for (const one of found.values()) known.add(processKey(one))
  return [...found.values()]
}

/**
 * The agent's group, unless its number may have been reused; a number is not reused while a process of that
 * group runs.
 */
function groupOf(
  leader: GroupLeader | undefined,
  all: readonly ProcessFacts[],
  known: ReadonlySet<string>,
): number | undefined {
  if (leader === undefined) return undefined
  const there = all.find(({ pid }) => pid === leader.pid)
  const endedJustNow = leader.ownsGroupAfterExit === true || known.has(processKey(leader))
  const isOwn = there === undefined ? endedJustNow : there.startedAt === leader.startedAt
  return isOwn ? leader.pid : undefined
}

/** Unique even when the pid is reused. */
export const processKey = ({ pid, startedAt }: Pick<GroupLeader, 'pid' | 'startedAt'>) =>
  `${pid} ${startedAt}`

function send(signal: NodeJS.Signals, processes: readonly ProcessFacts[]) {
  for (const one of processes.filter(isAlive)) {
    try {
      process.kill(one.pid, signal)
    } catch {
      // It ended meanwhile or we may not signal it; the next scan tells.
    }
  }
}

async function waitUntilGone(processes: readonly ProcessFacts[], deadline: number): Promise<void> {
  let left = processes.filter(isAlive)
  while (left.length > 0 && performance.now() < deadline) {
    await sleep(CHECK_EVERY_MS)
    left = left.filter(isAlive)
  }
}
