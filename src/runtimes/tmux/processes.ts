/** The processes of an agent: which they are, and how they are ended so that nothing is left. */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { AppError } from '../../model/errors.ts'
import { type Clock, sleep } from './surroundings.ts'

/** In the environment of everything that an agent starts, with a value of its own per launch. */
export const MARK = 'ORC_SESSION'

export interface AgentProcess {
  /** The one in the pane: leader of its group, as long as it is there. */
  readonly pid: number
  /** Pids come again. */
  readonly startedAt: string
  readonly mark: string
}

export interface ProcessFacts {
  readonly pid: number
  readonly parent: number
  readonly group: number
  readonly isZombie: boolean
  /** Tells two processes of the same pid apart. */
  readonly startedAt: string
  /** Undefined where it cannot be read. */
  readonly mark?: string | undefined
}

const GRACE_MS = 3000
const KILL_MS = 3000
const LOOK_EVERY_MS = 20

/**
 * Ends the agent's process group, its descendants and everything that carries its mark: daemons leave the group and
 * the tree, and keep the environment. Resolves when they are gone; a process that stays throws.
 */
export async function endProcesses(agent: AgentProcess, clock: Clock): Promise<void> {
  const found = await findProcesses(agent)
  signal(found, 'SIGTERM')
  // A stopped process hears nothing else.
  signal(found, 'SIGCONT')
  await areGone(found, clock, GRACE_MS)
  // With what they started while they ended.
  const stubborn = [...found.filter(isAlive), ...(await findProcesses(agent))]
  if (stubborn.length === 0) return
  signal(stubborn, 'SIGKILL')
  await areGone(stubborn, clock, KILL_MS)
  const left = [...stubborn.filter(isAlive), ...(await findProcesses(agent))]
  if (left.length === 0) return
  throw new AppError('RUNTIME_FAILED', `${left.length} of its processes cannot be ended`, {
    hint: `Look at them with ps -p ${left.map(({ pid }) => pid).join(',')}`,
  })
}

export async function findProcesses({ pid, startedAt, mark }: AgentProcess): Promise<ProcessFacts[]> {
  const all = (await readProcesses()).filter((one) => !one.isZombie && one.pid !== process.pid)
  const isLed = all.some((one) => one.pid === pid && one.startedAt === startedAt)
  const found = new Map(
    all
      .filter((one) => one.mark === mark || (isLed && (one.group === pid || one.pid === pid)))
      .map((one) => [one.pid, one]),
  )
  for (let before = -1; before !== found.size; ) {
    before = found.size
    for (const one of all) if (found.has(one.parent)) found.set(one.pid, one)
  }
  return [...found.values()]
}

function signal(processes: readonly ProcessFacts[], name: NodeJS.Signals) {
  for (const { pid } of processes) {
    try {
      process.kill(pid, name)
    } catch {
      // Gone already.
    }
  }
}

async function areGone(processes: readonly ProcessFacts[], clock: Clock, withinMs: number): Promise<boolean> {
  let left = processes
  for (let waited = 0; ; waited += LOOK_EVERY_MS) {
    left = left.filter((one) => isAlive(one))
    if (left.length === 0) return true
    if (waited >= withinMs) return false
    await sleep(clock, LOOK_EVERY_MS)
  }
}

function isAlive({ pid, startedAt }: ProcessFacts): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  const facts = readStat(pid)
  return facts === undefined ? !hasProc() : !facts.isZombie && facts.startedAt === startedAt
}

/** When the process of that pid began, or undefined when there is none. */
export async function startOf(pid: number): Promise<string | undefined> {
  if (hasProc()) return readStat(pid)?.startedAt
  return (await readProcessTable()).find((one) => one.pid === pid)?.startedAt
}

let reading: Promise<ProcessFacts[]> | undefined

/** One reading for all who ask in the same breath, begun after they asked: a whole team may be stopping. */
function readProcesses(): Promise<ProcessFacts[]> {
  reading ??= new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
    reading = undefined
    return hasProc() ? readProc() : readProcessTable()
  })
  return reading
}

function readProc(): ProcessFacts[] {
  const facts: ProcessFacts[] = []
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? readStat(Number(name)) : undefined
    if (stat !== undefined) facts.push({ ...stat, mark: readMark(stat.pid) })
  }
  return facts
}

function hasProc(): boolean {
  return readStat(process.pid) !== undefined
}

function readStat(pid: number): ProcessFacts | undefined {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return undefined
  }
  // The name in brackets may hold anything, brackets too.
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
  try {
    const environment = readFileSync(`/proc/${pid}/environ`, 'latin1')
    const at = `\0${environment}`.indexOf(`\0${MARK}=`)
    if (at < 0) return undefined
    const value = at + MARK.length + 1
    const end = environment.indexOf('\0', value)
    return environment.slice(value, end < 0 ? undefined : end)
  } catch {
    return undefined
  }
}

/** Where there is no /proc: without marks, so that a daemon that left its group and its parent is not found. */
export async function readProcessTable(): Promise<ProcessFacts[]> {
  const table = await new Promise<string>((resolve, reject) => {
    const options = { maxBuffer: 1 << 24, env: { ...process.env, LC_ALL: 'C' } }
    execFile('ps', ['-axo', 'pid=,ppid=,pgid=,stat=,lstart='], options, (error, stdout) =>
      error === null ? resolve(stdout) : reject(error),
    )
  })
  return table.split('\n').flatMap((line) => {
    const row = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(.+?)\s*$/.exec(line)
    if (row === null) return []
    const [, pid, parent, group, state, startedAt] = row
    return [
      {
        pid: Number(pid),
        parent: Number(parent),
        group: Number(group),
        isZombie: state!.startsWith('Z'),
        startedAt: startedAt!,
      },
    ]
  })
}
