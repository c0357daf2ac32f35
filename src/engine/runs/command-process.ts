import { spawn } from 'node:child_process'
import { closeSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { stripVTControlCharacters } from 'node:util'
import { isRunning } from '../../model/process.ts'
import { inheritedEnvironment } from '../../runtimes/environment.ts'
import { HAS_MARKS, isAlive, type ProcessFacts, SESSION_MARK, processStartedAt } from '../../runtimes/process-table.ts'
import { endProcesses, type GroupLeader } from '../../runtimes/processes.ts'
import { type ExitNote, exitNoteOf, noteAtEnd, notingOwnEnd } from './exit-notes.ts'
import type { Exit, Launched, Launcher, LaunchOrder } from './launcher.ts'
import { openLog, readTail, sizeOf } from './log-files.ts'

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
  /** Resolves when nothing of its group is left, and of one that failed nothing at all. */
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
/** After the end of a process, the shell that waited for it notes how it ended. */
export const NOTED_WITHIN_MS = 1000

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
  const script = `${notingOwnEnd(order)}\n${order.command}`
  return { script, cwd, variables, logFile, atEnd: noteAtEnd(order) }
}

function follow(
  { logFile, exitsFile, mark }: CommandOrder,
  { pid, exited }: Pick<Launched, 'pid'> & { exited: Promise<Exit & { why?: string }> },
): CommandProcess {
  let isOver = false
  let ending: Promise<void> | undefined
  async function endAll() {
    const group = await pid
    // Asked for only now: most are never ended, and gone before anybody could ask.
    const leader = group === undefined || isOver ? undefined : leaderOf(group, await processStartedAt(group))
    await endProcesses({ mark, leader })
  }
  return {
    started: pid.then(() => {}),
    ended: exited.then(async ({ code, signal, isKnown, why }: Exit & { why?: string }): Promise<Ended> => {
      const group = await pid
      // The launcher went first, by no fault of the command: it is waited for like one of an earlier service.
      while (!isKnown && group !== undefined && isRunning(group)) await sleep(LOOK_EVERY_MS)
      isOver = true
      // Its own group may be gone before all that is being ended.
      await ending?.catch(() => {})
      const found = isKnown ? code : (exitNoteOf(exitsFile, mark)?.code ?? null)
      await endLeft(mark, group, found)
      if (why !== undefined) return { code: null, signal: null, lost: false, why }
      const lost = !isKnown && found === null
      return {
        code: found,
        signal,
        lost,
        why: found === 0 ? '' : explain(howItEnded(found, signal), logFile),
      }
    }),
    end() {
      ending ??= endAll()
      return ending
    },
    freeze: (frozen) =>
      void pid.then((group) => {
        if (group !== undefined && !isOver) signalGroup(group, frozen ? 'SIGSTOP' : 'SIGCONT')
      }),
  }
}

/**
 * What a command left behind in its group ends with it. So does what left that group, where the command failed: it would work
 * beside the next attempt. To find it takes a look at every process, which one that ended well is spared.
 */
async function endLeft(mark: string, group: number | undefined, code: number | null): Promise<void> {
  const leader = group !== undefined && hasGroup(group) ? leaderOf(group, undefined) : undefined
  if (leader === undefined && (code === 0 || !HAS_MARKS)) return
  // What cannot be ended now is tried again before the next attempt.
  await endProcesses({ mark, leader }).catch(() => {})
}

/** Its number is not given again while anything of its group is there. */
function leaderOf(pid: number, startedAt: string | undefined): GroupLeader {
  return { pid, startedAt, ownsGroupAfterExit: true }
}

/** Where there is no launcher, or it cannot. */
function spawnDirectly(
  { script, cwd, variables, logFile }: LaunchOrder,
  environment: CommandOrder['environment'],
): { pid: Promise<number | undefined>; exited: Promise<Exit & { why?: string }> } {
  // Not a pipe: with the service its other end would go, and with it the agent.
  const log = openLog(logFile)
  const env = { ...inheritedEnvironment(environment), ...variables }
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
 * have under that service: whatever that left behind in its group ends with it, and if it failed, what has left that as well.
 */
export function adoptCommand(
  { mark, exitsFile, logFile }: Pick<CommandOrder, 'mark' | 'exitsFile' | 'logFile'>,
  processes: readonly ProcessFacts[],
): CommandProcess {
  const { promise, resolve } = Promise.withResolvers<Ended>()
  const first = processes
    .filter(({ pid, group }) => pid === group)
    .sort((one, other) => Number(one.startedAt) - Number(other.startedAt))[0]
  const note = watchNote(exitsFile, mark)
  let patience = NOTED_WITHIN_MS
  async function look() {
    const noted = note()
    const leader = noted?.pid === undefined ? first : processes.find(({ pid }) => pid === noted.pid)
    const isThere = leader !== undefined && isAlive(leader)
    // Noted and there: it is about to go. Neither: the shell that waited for it is about to note how it ended.
    if (isThere ? noted === undefined || patience > 0 : noted === undefined && patience > 0) {
      if (!isThere || noted !== undefined) patience -= LOOK_EVERY_MS
      setTimeout(() => void look(), LOOK_EVERY_MS)
      return
    }
    const group = noted?.pid ?? first?.pid
    const code = noted?.code ?? null
    // After a reboot its number may be anyone's.
    await endLeft(mark, processes.some((one) => one.group === group) ? group : undefined, code)
    const lost = code === null
    const why = lost
      ? 'it ended while the service was away'
      : code === 0
        ? ''
        : explain(howItEnded(code, null), logFile)
    resolve({ code, signal: null, lost, why })
  }
  void look()
  return {
    started: Promise.resolve(),
    ended: promise,
    end: () => endProcesses({ mark, leader: first }),
    freeze: (frozen) => void (first !== undefined && signalGroup(first.pid, frozen ? 'SIGSTOP' : 'SIGCONT')),
  }
}

/** Reads them again only where there are more of them. */
function watchNote(exitsFile: string, mark: string): () => ExitNote | undefined {
  let size = -1
  let note: ExitNote | undefined
  return () => {
    const now = sizeOf(exitsFile)
    if (now !== size) note = exitNoteOf(exitsFile, mark)
    size = now
    return note
  }
}

/** Whether it left its exit code, or is just about to. */
export async function hasEnded({
  exitsFile,
  mark,
}: Pick<CommandOrder, 'exitsFile' | 'mark'>): Promise<boolean> {
  const note = watchNote(exitsFile, mark)
  for (let patience = NOTED_WITHIN_MS; patience > 0; patience -= LOOK_EVERY_MS) {
    if (note() !== undefined) return true
    await wait(LOOK_EVERY_MS)
  }
  return note() !== undefined
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

/** Where it was in its program: many lines, after the one that says what was wrong. */
const STACK_FRAME = /^[\t ]+at .*(?:\n|$)/gm

/** The last lines say most about a failure. */
function explain(how: string, logFile: string): string {
  const tail = tailOf(logFile).replace(STACK_FRAME, '').trim()
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
