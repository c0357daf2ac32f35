/** Lists running processes and the session mark each carries in its environment. */
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'
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
