/** Finds all processes of an agent and ends them so that none is left. */
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { uptime } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { AppError } from '../base/errors.ts'
import { isRunning } from '../base/process.ts'

/** Environment variable of everything an agent starts, with a value unique to each launch. */
export const SESSION_MARK = 'ORC_SESSION'

export interface ProcessFacts {
  readonly pid: number
  readonly parent: number
  readonly group: number
  readonly isZombie: boolean
  /** Distinguishes two processes that were given the same pid. */
  readonly startedAt: string
  /** Undefined if the environment cannot be read. */
  readonly mark?: string | undefined
}

const HAS_PROC = existsSync('/proc/self/stat')
/** Whether marks can be read, and thus processes of an earlier service be found. */
export const HAS_MARKS = HAS_PROC

let reading: Promise<ProcessFacts[]> | undefined

/** Callers in the same tick share one scan, which starts after they asked: a whole team may be stopping. */
export function readProcesses(): Promise<ProcessFacts[]> {
  reading ??= new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
    reading = undefined
    return HAS_PROC ? readProc() : readPs()
  })
  return reading
}

/** When the process with that pid started, or undefined if there is none. */
export async function processStartedAt(pid: number): Promise<string | undefined> {
  if (HAS_PROC) return readStat(pid)?.startedAt
  return (await readPs()).find((one) => one.pid === pid)?.startedAt
}

/** Whether this process still runs. Without /proc, the pid may have been reused. */
export function isAlive({ pid, startedAt }: ProcessFacts): boolean {
  if (HAS_PROC) {
    const facts = readStat(pid)
    return facts !== undefined && !facts.isZombie && facts.startedAt === startedAt
  }
  return isRunning(pid)
}

function readProc(): ProcessFacts[] {
  const facts: ProcessFacts[] = []
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? readStat(Number(name)) : undefined
    if (stat !== undefined) facts.push({ ...stat, mark: readMark(stat.pid) })
  }
  return facts
}

function readStat(pid: number): ProcessFacts | undefined {
  const text = readOrEmpty(`/proc/${pid}/stat`)
  if (text === '') return undefined
  // The parenthesised name may contain anything, including parentheses.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return {
    pid,
    isZombie: fields[0] === 'Z' || fields[0] === 'X',
    parent: Number(fields[1]),
    group: Number(fields[2]),
    startedAt: fields[19]!,
  }
}

function readMark(pid: number): string | undefined {
  const beginning = `${SESSION_MARK}=`
  const variables = readOrEmpty(`/proc/${pid}/environ`).split('\0')
  return variables.find((variable) => variable.startsWith(beginning))?.slice(beginning.length)
}

/** Empty if the process has ended or belongs to another user. */
function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

const COLUMNS = ['pid=', 'ppid=', 'pgid=', 'stat=', 'lstart=']

/** Fallback without /proc: no marks, so a daemon that left both its group and its parent is not found. */
export async function readPs(): Promise<ProcessFacts[]> {
  const columns = COLUMNS.flatMap((column) => ['-o', column])
  const options = { maxBuffer: 64 << 20, env: { ...process.env, LC_ALL: 'C' } }
  const { stdout } = await promisify(execFile)('ps', ['-A', ...columns], options)
  return stdout.split('\n').flatMap((line) => {
    const row = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(.+?)\s*$/.exec(line)
    if (row === null) return []
    const [pid, parent, group] = row.slice(1, 4).map(Number) as [number, number, number]
    return [{ pid, parent, group, isZombie: row[4]!.startsWith('Z'), startedAt: row[5]! }]
  })
}

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
  throw new AppError('RUNTIME_FAILED', `${pids.length} of its processes are still running`, {
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
const processKey = ({ pid, startedAt }: Pick<GroupLeader, 'pid' | 'startedAt'>) => `${pid} ${startedAt}`

function send(signal: NodeJS.Signals, processes: readonly ProcessFacts[]) {
  for (const one of processes.filter(isAlive)) {
    try {
      process.kill(one.pid, signal)
    } catch {
      // The process ended meanwhile, or we may not signal it; the next scan tells.
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

/** Unit of a process's start time in /proc. */
const TICKS_PER_SECOND = 100
/** A command started up to this long before the interrupt may have been forgotten by its program. */
const JUST_BEFORE_S = 2
/** The kernel may need a moment to reparent an orphan after its wrapper was killed. */
const RECHECK_AFTER_MS = [100, 400]
/** Matches no process, so that only the orphan is ended and not all of the agent. */
const NO_MARK = 'nobody'

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
export function findOrphans(
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
