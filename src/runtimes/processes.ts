/** The processes of an agent: which they are, and how they are ended so that nothing is left. */
import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '../model/errors.ts'
import { isAlive, type ProcessFacts, readProcesses } from './process-table.ts'

/** One launch of an agent. */
export interface AgentProcesses {
  /** Of all that it started, unless it was taken out on purpose. */
  readonly mark: string
  /** The process that leads the agent's group. */
  readonly leader?: Leader | undefined
}

export interface Leader {
  readonly pid: number
  /** As `startOf` said: after a while, or a reboot, the pid may be anyone's. Undefined: it has ended. */
  readonly startedAt: string | undefined
  /** The group outlives its leader and is still its own: so for one that ended just now, not for one that was kept. */
  readonly leavesGroup?: boolean
}

const GRACE_MS = 3000
const KILL_MS = 3000
const LOOK_EVERY_MS = 20

/**
 * Ends the agent's process group, its descendants and everything that bears its mark: daemons leave the group and the
 * tree, and keep the environment. Asks first, then kills. Resolves when they are gone; a process that stays throws.
 * In real time, since processes know no other.
 */
export async function endProcesses(agent: AgentProcesses, graceMs = GRACE_MS): Promise<void> {
  const known = new Set<string>()
  for (const [ask, withinMs] of [['SIGTERM', graceMs] as const, ['SIGKILL', KILL_MS] as const]) {
    const deadline = performance.now() + withinMs
    do {
      // Again and again, with what they started while they ended.
      const running = await findProcesses(agent, known)
      if (running.length === 0) return
      send(ask, running)
      // A stopped process would not hear the first one.
      send('SIGCONT', running)
      await areGone(running, deadline)
    } while (performance.now() < deadline)
  }
  const pids = (await findProcesses(agent, known)).map(({ pid }) => pid)
  if (pids.length === 0) return
  throw new AppError('RUNTIME_FAILED', `${pids.length} of its processes cannot be ended`, {
    hint: `Look at them with ps -p ${pids.join(',')}`,
    data: { pids },
  })
}

/** `known` remembers who belonged: a child whose parent has ended can no longer be told by descent. */
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
    if (isLeader || one.mark === mark || one.group === group || known.has(keyOf(one))) found.set(one.pid, one)
  }
  for (let before = -1; before !== found.size; ) {
    before = found.size
    for (const one of others) if (found.has(one.parent)) found.set(one.pid, one)
  }
  for (const one of found.values()) known.add(keyOf(one))
  return [...found.values()]
}

/** The agent's group, unless its number may be another's: none is given again while a process of that group runs. */
function groupOf(
  leader: Leader | undefined,
  all: readonly ProcessFacts[],
  known: ReadonlySet<string>,
): number | undefined {
  if (leader === undefined) return undefined
  const there = all.find(({ pid }) => pid === leader.pid)
  const endedJustNow = leader.leavesGroup === true || known.has(keyOf(leader))
  const isOwn = there === undefined ? endedJustNow : there.startedAt === leader.startedAt
  return isOwn ? leader.pid : undefined
}

/** Pids come again; this does not. */
export const keyOf = ({ pid, startedAt }: Pick<Leader, 'pid' | 'startedAt'>) => `${pid} ${startedAt}`

function send(signal: NodeJS.Signals, processes: readonly ProcessFacts[]) {
  for (const one of processes.filter(isAlive)) {
    try {
      process.kill(one.pid, signal)
    } catch {
      // It ended meanwhile, or it is not ours to signal: the next look tells.
    }
  }
}

async function areGone(processes: readonly ProcessFacts[], deadline: number): Promise<void> {
  let left = processes.filter(isAlive)
  while (left.length > 0 && performance.now() < deadline) {
    await sleep(LOOK_EVERY_MS)
    left = left.filter(isAlive)
  }
}
