/** Which processes run, and which of them bear the mark of an agent. */
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { isRunning } from '../model/process.ts'

/** In the environment of everything that an agent starts, with a value of its own per launch. */
export const SESSION_MARK = 'ORC_SESSION'

export interface ProcessFacts {
  readonly pid: number
  readonly parent: number
  readonly group: number
  readonly isZombie: boolean
  /** Pids come again: with it, two processes of the same pid are told apart. */
  readonly startedAt: string
  /** Undefined where it cannot be read. */
  readonly mark?: string | undefined
}

const HAS_PROC = existsSync('/proc/self/stat')
/** Whether marks can be read, and so whatever an earlier service left be found. */
export const HAS_MARKS = HAS_PROC

let reading: Promise<ProcessFacts[]> | undefined

/** One reading for all who ask in the same breath, begun after they asked: a whole team may be stopping. */
export function readProcesses(): Promise<ProcessFacts[]> {
  reading ??= new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
    reading = undefined
    return HAS_PROC ? readProc() : readPs()
  })
  return reading
}

/** When the process of that pid began, or undefined when there is none. */
export async function startOf(pid: number): Promise<string | undefined> {
  if (HAS_PROC) return readStat(pid)?.startedAt
  return (await readPs()).find((one) => one.pid === pid)?.startedAt
}

/** Whether that very process still runs. Without /proc another one may have its pid by now. */
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
  const text = readOrNothing(`/proc/${pid}/stat`)
  if (text === '') return undefined
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
  const beginning = `${SESSION_MARK}=`
  const variables = readOrNothing(`/proc/${pid}/environ`).split('\0')
  return variables.find((variable) => variable.startsWith(beginning))?.slice(beginning.length)
}

/** It may have ended, or be another user's. */
function readOrNothing(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

const COLUMNS = ['pid=', 'ppid=', 'pgid=', 'stat=', 'lstart=']

/** Where there is no /proc: without marks, so that a daemon that left its group and its parent is not found. */
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
