import { spawn } from 'node:child_process'
import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, readSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { passedOn } from '../../runtimes/environment.ts'
import { isAlive, type ProcessFacts, SESSION_MARK, startOf } from '../../runtimes/process-table.ts'
import { endProcesses, type Leader } from '../../runtimes/processes.ts'

export interface CommandOrder {
  /** For the shell. */
  readonly command: string
  readonly cwd: string
  readonly mark: string
  /** What it prints. */
  readonly logFile: string
  /** Where its shell puts its exit code. */
  readonly exitFile: string
  /** What the service was started with. */
  readonly environment: Readonly<NodeJS.ProcessEnv>
}

export interface Ended {
  readonly code: number | null
  readonly signal: string | null
  /** It went while nobody looked, and left no exit code. */
  readonly lost: boolean
  /** The end of what it printed, where that may explain it; or why it could not be run. */
  readonly why: string
}

/** A process in a group of its own. It outlives the service, and the next one finds it again. */
export interface CommandProcess {
  /** Resolves when nothing of its group is left. */
  readonly ended: Promise<Ended>
  /** Ends all that it started. */
  end(): Promise<void>
  /** Holds it still, or lets it go on. */
  freeze(frozen: boolean): void
}

const TAIL_BYTES = 2000
const SHOWN = 300
/** For one that this service did not start: its end is told to its own parent only. */
const LOOK_EVERY_MS = 100

export function startCommand(order: CommandOrder): CommandProcess {
  const { logFile, exitFile, cwd, mark } = order
  mkdirSync(dirname(logFile), { recursive: true })
  // Not a pipe: with the service its other end would go, and with it the agent.
  const log = openSync(logFile, 'a')
  const child = spawn('/bin/sh', ['-c', withExitFile(order.command, exitFile)], {
    cwd,
    detached: true,
    stdio: ['ignore', log, log],
    env: { ...passedOn(order.environment), TERM: 'dumb', [SESSION_MARK]: mark },
  })
  closeSync(log)
  const { pid } = child
  const started = pid === undefined ? undefined : startOf(pid)
  const leaderOf = async (): Promise<Leader | undefined> => {
    const startedAt = await started
    return pid === undefined || startedAt === undefined ? undefined : { pid, startedAt, leavesGroup: true }
  }
  const { promise, resolve } = Promise.withResolvers<Ended>()
  child.on('error', (error) =>
    resolve({ code: null, signal: null, lost: false, why: `it could not be run: ${error.message}` }),
  )
  child.on('exit', (code, signal) => {
    const done = () =>
      resolve({
        code,
        signal,
        lost: false,
        why: code === 0 ? '' : explain(howItEnded(code, signal), logFile),
      })
    // Whatever it left behind in its group ends with it.
    if (pid !== undefined && hasGroup(pid))
      void leaderOf()
        .then((leader) => endProcesses({ mark, leader }))
        .then(done, done)
    else done()
  })
  return {
    ended: promise,
    end: async () => await endProcesses({ mark, leader: await leaderOf() }),
    freeze: (frozen) => void (pid !== undefined && signalGroup(pid, frozen ? 'SIGSTOP' : 'SIGCONT')),
  }
}

/** What an earlier service started, by its mark. Its processes may all have ended. */
export function adoptCommand(
  { mark, exitFile, logFile }: Pick<CommandOrder, 'mark' | 'exitFile' | 'logFile'>,
  processes: readonly ProcessFacts[],
): CommandProcess {
  const { promise, resolve } = Promise.withResolvers<Ended>()
  const leader = processes.find(({ pid, group }) => pid === group)
  function look() {
    if (processes.some(isAlive)) {
      setTimeout(look, LOOK_EVERY_MS)
      return
    }
    const code = readExitCode(exitFile)
    const lost = code === undefined
    const why = lost
      ? 'it ended while the service was away'
      : code === 0
        ? ''
        : explain(howItEnded(code, null), logFile)
    resolve({ code: code ?? null, signal: null, lost, why })
  }
  look()
  return {
    ended: promise,
    end: () => endProcesses({ mark, leader }),
    freeze: (frozen) =>
      void (leader !== undefined && signalGroup(leader.pid, frozen ? 'SIGSTOP' : 'SIGCONT')),
  }
}

export function hasExitFile(exitFile: string): boolean {
  return readExitCode(exitFile) !== undefined
}

/** The service ends it: what its shell may still write down is not its own end. */
export function forgetExit(exitFile: string): void {
  rmSync(exitFile, { force: true })
}

/** The code survives the service that waited for it. One that replaces its shell leaves none, and is run again after a crash. */
function withExitFile(command: string, exitFile: string): string {
  const path = `'${exitFile.replaceAll("'", "'\\''")}'`
  return `trap 'printf %s "$?" > ${path.replaceAll("'", "'\\''")}' EXIT\n${command}`
}

function readExitCode(exitFile: string): number | undefined {
  try {
    const text = readFileSync(exitFile, 'latin1')
    return /^\d{1,3}$/.test(text) ? Number(text) : undefined
  } catch {
    return undefined
  }
}

function hasGroup(pid: number): boolean {
  return signalGroup(pid, 0)
}

function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal)
  } catch {
    return false
  }
}

function howItEnded(code: number | null, signal: string | null): string {
  if (code !== null) return `it exited with ${code}`
  return signal === null ? 'it ended' : `it was ended by ${signal}`
}

/** The last lines say most about a failure. */
function explain(how: string, logFile: string): string {
  const tail = tailOf(logFile)
  if (tail === '') return how
  return `${how}: ${tail.length > SHOWN ? `…${tail.slice(-SHOWN)}` : tail}`
}

function tailOf(logFile: string): string {
  let file: number | undefined
  try {
    file = openSync(logFile, 'r')
    const { size } = fstatSync(file)
    const buffer = Buffer.alloc(Math.min(size, TAIL_BYTES))
    const count = readSync(file, buffer, 0, buffer.length, size - buffer.length)
    return stripVTControlCharacters(
      buffer
        .subarray(0, count)
        .toString()
        .replace(/^\ufffd+/, ''),
    )
      .replace(/[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/g, '')
      .trim()
  } catch {
    return ''
  } finally {
    if (file !== undefined) closeSync(file)
  }
}
