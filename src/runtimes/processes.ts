/** Finds all processes of an agent and ends them so that none is left. */
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
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
/** Whether the marks of processes can be read, which is how those of an earlier service are found. */
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
async function readPs(): Promise<ProcessFacts[]> {
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
export const processKey = ({ pid, startedAt }: Pick<GroupLeader, 'pid' | 'startedAt'>) =>
  `${pid} ${startedAt}`

function send(signal: NodeJS.Signals, processes: readonly ProcessFacts[]) {
  for (const one of processes.filter(isAlive)) {
    try {
      process.kill(one.pid, signal)
    } catch {
      // The process has just ended, or we may not signal it; the next scan shows which.
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
