import { spawn } from 'node:child_process'
import { closeSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { stripVTControlCharacters } from 'node:util'
import { passedOn } from '../../runtimes/environment.ts'
import { isAlive, type ProcessFacts, SESSION_MARK, startOf } from '../../runtimes/process-table.ts'
import { endProcesses, type Leader } from '../../runtimes/processes.ts'
import type { Exit, Launched, Launcher, LaunchOrder } from './launcher.ts'
import { appendLine, openLog, readFile, readTail } from './log-files.ts'

export interface CommandOrder {
  /** For the shell. */
  readonly command: string
  readonly cwd: string
  readonly mark: string
  /** What it prints. */
  readonly logFile: string
  /** Where the shells of a run put their exit codes, a line each. */
  readonly exitsFile: string
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
  /** It has begun, or never will. */
  readonly started: Promise<void>
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

export function startCommand(order: CommandOrder, launcher: Launcher | undefined): CommandProcess {
  const wanted = launchOrderOf(order)
  return follow(order, launcher?.launch(wanted) ?? spawnDirectly(wanted, order.environment))
}

/** The shell of a command that waits for the word to begin. */
export interface ReadyCommand {
  /** Undefined: it is gone, and nothing has begun. */
  start(): CommandProcess | undefined
  cancel(): void
}

export function readyCommand(order: CommandOrder, launcher: Launcher): ReadyCommand | undefined {
  const ready = launcher.ready(launchOrderOf(order))
  if (ready === undefined) return undefined
  return {
    start() {
      const launched = ready.go()
      return launched === undefined ? undefined : follow(order, launched)
    },
    cancel: ready.cancel,
  }
}

function launchOrderOf(order: CommandOrder): LaunchOrder {
  const { cwd, mark, logFile } = order
  const variables = { TERM: 'dumb', [SESSION_MARK]: mark }
  return { script: withExit(order), cwd, variables, logFile, atEnd: noteUnlessSignalled(order) }
}

function follow(
  { logFile, exitsFile, mark }: CommandOrder,
  { pid, exited }: Pick<Launched, 'pid'> & { exited: Promise<Exit & { why?: string }> },
): CommandProcess {
  let isOver = false
  return {
    started: pid.then(() => {}),
    ended: exited.then(async ({ code, signal, isKnown, why }: Exit & { why?: string }): Promise<Ended> => {
      const group = await pid
      // The launcher went first, by no fault of the command: it is waited for like one of an earlier service.
      while (!isKnown && group !== undefined && hasGroup(group)) await sleep(LOOK_EVERY_MS)
      isOver = true
      // Whatever it left behind in its group ends with it.
      if (group !== undefined && hasGroup(group)) {
        await endProcesses({ mark, leader: leaderOf(group, undefined) }).catch(() => {})
      }
      if (why !== undefined) return { code: null, signal: null, lost: false, why }
      const found = isKnown ? code : (readExitCode(exitsFile, mark) ?? null)
      const lost = !isKnown && found === null
      return {
        code: found,
        signal,
        lost,
        why: found === 0 ? '' : explain(howItEnded(found, signal), logFile),
      }
    }),
    async end() {
      const group = await pid
      // Asked for only now: most are never ended, and gone before anybody could ask.
      const leader = group === undefined || isOver ? undefined : leaderOf(group, await startOf(group))
      await endProcesses({ mark, leader })
    },
    freeze: (frozen) =>
      void pid.then((group) => {
        if (group !== undefined && !isOver) signalGroup(group, frozen ? 'SIGSTOP' : 'SIGCONT')
      }),
  }
}

/** Its number is not given again while anything of its group is there. */
function leaderOf(pid: number, startedAt: string | undefined): Leader {
  return { pid, startedAt, leavesGroup: true }
}

/** Where there is no launcher, or it cannot. */
function spawnDirectly(
  { script, cwd, variables, logFile }: LaunchOrder,
  environment: CommandOrder['environment'],
): { pid: Promise<number | undefined>; exited: Promise<Exit & { why?: string }> } {
  // Not a pipe: with the service its other end would go, and with it the agent.
  const log = openLog(logFile)
  const env = { ...passedOn(environment), ...variables }
  const child = spawn('/bin/sh', ['-c', script], { cwd, detached: true, stdio: ['ignore', log, log], env })
  closeSync(log)
  const { promise: exited, resolve } = Promise.withResolvers<Exit & { why?: string }>()
  child.on('error', ({ message }) =>
    resolve({ code: null, signal: null, isKnown: true, why: `it could not be run: ${message}` }),
  )
  child.on('exit', (code, signal) => resolve({ code, signal, isKnown: true }))
  return { pid: Promise.resolve(child.pid), exited }
}

/**
 * What an earlier service started, by its mark. Its processes may all have ended. It has ended with its first one, as it would
 * have under that service: whatever that left behind in its group ends with it.
 */
export function adoptCommand(
  { mark, exitsFile, logFile }: Pick<CommandOrder, 'mark' | 'exitsFile' | 'logFile'>,
  processes: readonly ProcessFacts[],
): CommandProcess {
  const { promise, resolve } = Promise.withResolvers<Ended>()
  const leader = processes.find(({ pid, group }) => pid === group)
  const leavesSome = () =>
    leader === undefined
      ? processes.some((one) => one.group !== one.pid && isAlive(one))
      : hasGroup(leader.pid)
  let isLastLook = false
  async function look() {
    const isNoted = readExitCode(exitsFile, mark) !== undefined
    const isThere = leader !== undefined && isAlive(leader)
    // Both at once: it is about to go, or what is there is something that it left. Neither: its code is about to be noted.
    if (isThere === isNoted ? !isLastLook : isThere) {
      isLastLook = isThere === isNoted
      setTimeout(() => void look(), LOOK_EVERY_MS)
      return
    }
    if (leavesSome()) {
      await endProcesses({ mark, leader: leader && { ...leader, leavesGroup: true } }).catch(() => {})
    }
    const code = readExitCode(exitsFile, mark)
    const lost = code === undefined
    const why = lost
      ? 'it ended while the service was away'
      : code === 0
        ? ''
        : explain(howItEnded(code, null), logFile)
    resolve({ code: code ?? null, signal: null, lost, why })
  }
  void look()
  return {
    started: Promise.resolve(),
    ended: promise,
    end: () => endProcesses({ mark, leader }),
    freeze: (frozen) =>
      void (leader !== undefined && signalGroup(leader.pid, frozen ? 'SIGSTOP' : 'SIGCONT')),
  }
}

export function hasEnded({ exitsFile, mark }: Pick<CommandOrder, 'exitsFile' | 'mark'>): boolean {
  return readExitCode(exitsFile, mark) !== undefined
}

/** The service ends it: what its shell may still write down is not its own end. */
export function forgetExit(exitsFile: string, mark: string): void {
  appendLine(exitsFile, `${mark} ${FORGOTTEN}`)
}

const FORGOTTEN = '-'

/** Whose exit codes were written down. */
export function marksIn(exitsFile: string): ReadonlySet<string> {
  const lines = readFile(exitsFile)?.toString('latin1').split('\n') ?? []
  return new Set(lines.map((line) => line.slice(0, line.lastIndexOf(' '))))
}

/** The code survives the service that waited for it: written by its own shell as its last deed. */
function withExit(order: CommandOrder): string {
  const note = `orc_code=$?; ${noting(order, '$orc_code')}`
  return `trap ${quoted(note)} EXIT\n${order.command}`
}

/**
 * By the shell that waits for it, for one that replaced its own shell, or had a last deed of its own. One that was ended by a
 * signal may have been ended by a service that goes: it is taken for lost.
 */
function noteUnlessSignalled(order: CommandOrder): string {
  return `[ "$1" -gt 128 ] || { ${noting(order, '$1')}; }`
}

/** Not through a link, nor into a pipe, that another agent has put there. */
function noting({ exitsFile, mark }: CommandOrder, code: string): string {
  const file = quoted(exitsFile)
  return `[ ! -f ${file} ] || [ -L ${file} ] || echo "${mark} ${code}" >> ${file}`
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

/** The last word on it counts. */
function readExitCode(exitsFile: string, mark: string): number | undefined {
  const lines = `\n${readFile(exitsFile)?.toString('latin1') ?? ''}`
  const at = lines.lastIndexOf(`\n${mark} `)
  const code =
    at < 0 ? undefined : /^\d{1,3}(?=\n)/.exec(lines.slice(at + mark.length + 2, at + mark.length + 7))
  return code ? Number(code[0]) : undefined
}

/** It does not keep a service alive that is about to end. */
function sleep(ms: number): Promise<void> {
  return wait(ms, undefined, { ref: false })
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
  const tail =
    readTail(logFile, TAIL_BYTES)
      ?.toString()
      .replace(/^\ufffd+/, '') ?? ''
  return stripVTControlCharacters(tail)
    .replace(/[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/g, '')
    .trim()
}
