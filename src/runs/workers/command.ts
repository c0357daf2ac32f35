import { closeSync, constants as fileFlags, fstatSync, lstatSync, openSync, readSync, rmSync } from 'node:fs'
import { constants as osConstants } from 'node:os'
import { stripVTControlCharacters } from 'node:util'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { inheritedEnvironment } from '../../runtimes/environment.ts'
import {
  endProcesses,
  type GroupLeader,
  HAS_MARKS,
  isAlive,
  type ProcessFacts,
  processStartedAt,
  readProcesses,
  SESSION_MARK,
} from '../../runtimes/processes.ts'
import type { RunMarks } from '../process-marks.ts'
import type { LaunchEnd, Launcher } from './launcher.ts'
import type { WorkEnd, Worker, WorkerKind, WorkOrder, WorkPort } from './worker.ts'

export interface CommandWorkersOptions {
  clock: Clock
  log: Log
  marks: RunMarks
  environment: Readonly<NodeJS.ProcessEnv>
  launcher: Launcher
  /** Processes that an earlier service left running, by mark. */
  leftovers(): ReadonlyMap<string, readonly ProcessFacts[]>
}

/** A command that reported completion is ended if it does not exit within this time. */
const EXIT_MS = 5000

/** Shell commands, each a process group in the workspace. launcher.ts starts them in a process of its own, spawn-commands.ts. */
export function createCommandWorkers(options: CommandWorkersOptions): WorkerKind {
  const { clock, log, marks, environment, launcher, leftovers } = options

  function orderOf({ run, node, what, runner, workspace, logFile, exitFile }: WorkOrder): CommandOrder {
    const command = runner.kind === 'command' ? runner.command : ''
    return { command, cwd: workspace, mark: marks.of(run, node, what), logFile, exitFile, environment }
  }

  function workerOf(process: CommandProcess, { exitFile, logFile }: CommandOrder, port: WorkPort): Worker {
    let printed = 0
    let isClosed = false
    let isDone = false
    let cancel = () => {}
    void process.started.then((isStarted) => {
      if (isStarted && !isClosed) port.started()
    })
    void process.ended.then((ended) => {
      isDone = true
      cancel()
      if (!isClosed) port.ended(ended)
    })
    const end = () =>
      process
        .end()
        .catch((error: unknown) => log.error({ err: error }, 'ending the processes of a run failed'))
    return {
      stop(finished) {
        if (isDone) return
        cancel()
        if (finished) cancel = clock.after(EXIT_MS, () => void end())
        else void end()
      },
      freeze(frozen) {
        if (!isDone) process.freeze(frozen)
      },
      showsLife() {
        const before = printed
        printed = sizeOf(logFile)
        return printed > before
      },
      async close(how) {
        cancel()
        if (isDone) return
        isClosed = true
        if (how === 'leave') return
        await end()
        // The service ended it, so its exit code says nothing: the next service starts the attempt again.
        rmSync(exitFile, { force: true })
      },
    }
  }

  return {
    start(work, port) {
      const order = orderOf(work)
      return workerOf(startCommand(order, launcher), order, port)
    },
    find(work) {
      const order = orderOf(work)
      const processes = leftovers().get(order.mark) ?? []
      if (processes.length === 0 && readExit(order.exitFile).note === undefined) return undefined
      return (port) => workerOf(adoptCommand(order, processes), order, port)
    },
  }
}

export interface CommandOrder {
  /** A command line for /bin/sh. */
  readonly command: string
  readonly cwd: string
  readonly mark: string
  readonly logFile: string
  readonly exitFile: string
  /** The environment of the service. */
  readonly environment: Readonly<NodeJS.ProcessEnv>
}

/** A process group that outlives the service; the next service finds it again. */
export interface CommandProcess {
  /** Resolves to false if it could not be started. */
  readonly started: Promise<boolean>
  /** Resolves when the process group has ended; after a failure, when all processes with the mark have ended. */
  readonly ended: Promise<WorkEnd>
  /** Ends every process that it started. */
  end(): Promise<void>
  /** Suspends or resumes the group. */
  freeze(frozen: boolean): void
}

const SIGNALS = new Map(Object.entries(osConstants.signals).map(([name, number]) => [128 + number, name]))
const TAIL_BYTES = 2000
const SHOWN = 300
/** The system reports the end of a process to its parent only, so an adopted command is polled. */
const POLL_MS = 100

function startCommand(order: CommandOrder, launcher: Launcher): CommandProcess {
  const { command, cwd, mark, logFile, exitFile, environment } = order
  const { promise: started, resolve: setPid } = Promise.withResolvers<number | undefined>()
  const { promise: exited, resolve: setEnd } = Promise.withResolvers<LaunchEnd>()
  let isOver = false
  launcher.launch(
    {
      command: command.replaceAll('\0', ''),
      cwd,
      logFile,
      exitFile,
      env: { ...inheritedEnvironment(environment), TERM: 'dumb', [SESSION_MARK]: mark },
    },
    {
      started: setPid,
      ended(end) {
        isOver = end.type !== 'launcher_lost'
        setPid(undefined)
        setEnd(end)
      },
    },
  )

  let ending: Promise<void> | undefined
  async function endAll() {
    const pid = await started
    const leader = pid === undefined || isOver ? undefined : leaderOf(pid, await processStartedAt(pid))
    await endProcesses({ mark, leader })
  }
  async function waitForEnd(): Promise<WorkEnd> {
    const end = await exited
    // The group may end before the other processes that `end` stops.
    await ending?.catch(() => {})
    const pid = await started
    if (end.type === 'launcher_lost') {
      const all = await readProcesses().catch(() => [])
      const processes = all.filter((one) => !one.isZombie && (one.mark === mark || one.group === pid))
      const adopted = await adoptCommand(order, processes).ended
      isOver = true
      return adopted
    }
    if (end.type === 'failed') {
      return { code: null, signal: null, lost: false, why: `it could not be run: ${end.why}` }
    }
    const signal = end.signal ?? SIGNALS.get(end.code!) ?? null
    const code = signal === null ? end.code : null
    await endLeftovers(mark, pid, code)
    return { code, signal, lost: false, why: code === 0 ? '' : explain(code, signal, logFile) }
  }
  return {
    started: started.then((pid) => pid !== undefined),
    ended: waitForEnd(),
    end() {
      ending ??= endAll()
      return ending
    },
    freeze(frozen) {
      void started.then((pid) => {
        if (pid !== undefined && !isOver) signalGroup(pid, frozen ? 'SIGSTOP' : 'SIGCONT')
      })
    },
  }
}

/**
 * Follows a command that an earlier service started. `processes` are those with its mark, if any are left. The command
 * has ended when its wrapper has, even if other processes still have the mark.
 */
export function adoptCommand(
  { mark, exitFile, logFile }: Pick<CommandOrder, 'mark' | 'exitFile' | 'logFile'>,
  processes: readonly ProcessFacts[],
): CommandProcess {
  const { promise: ended, resolve } = Promise.withResolvers<WorkEnd>()
  const { pid } = readExit(exitFile)
  // If an agent has removed the file, assume that the oldest group leader is the wrapper.
  const leader =
    pid === undefined
      ? processes
          .filter((one) => one.pid === one.group)
          .sort((one, other) => Number(one.startedAt) - Number(other.startedAt))[0]
      : processes.find((one) => one.pid === pid)

  async function poll() {
    const isThere = leader !== undefined && isAlive(leader)
    // Read this after `isAlive`, because the wrapper writes the code before it ends.
    const { note } = readExit(exitFile)
    if (isThere && note === undefined) {
      setTimeout(() => void poll(), POLL_MS)
      return
    }
    const code = note ?? null
    // After a reboot, the pid may belong to another process, so the group counts only if the mark was found in it.
    const group = leader?.pid ?? pid
    await endLeftovers(mark, processes.some((one) => one.group === group) ? group : undefined, code)
    const why =
      code === null ? 'it ended while the service was away' : code === 0 ? '' : explain(code, null, logFile)
    resolve({ code, signal: null, lost: code === null, why })
  }
  void poll()
  return {
    started: Promise.resolve(true),
    ended,
    end: () => endProcesses({ mark, leader }),
    freeze(frozen) {
      if (leader !== undefined) signalGroup(leader.pid, frozen ? 'SIGSTOP' : 'SIGCONT')
    },
  }
}

/** `note`: the exit code; null after a signal; undefined until the command has ended. */
function readExit(exitFile: string): { pid: number | undefined; note: number | null | undefined } {
  const found = /^(\d{1,10})\n(?:(\d{1,3}|\?)\n)?/.exec(readPart(exitFile, 32, 'head'))
  if (found === null) return { pid: undefined, note: undefined }
  const [, pid, note] = found
  return { pid: Number(pid), note: note === undefined ? undefined : note === '?' ? null : Number(note) }
}

/**
 * Ends the processes that a command left in its group. After a failure, also ends those that left the group, because
 * they would disturb the next attempt. Finding these takes a scan of all processes, so a success skips it.
 */
async function endLeftovers(mark: string, group: number | undefined, code: number | null): Promise<void> {
  const leader = group !== undefined && signalGroup(group, 0) ? leaderOf(group, undefined) : undefined
  if (leader === undefined && (code === 0 || !HAS_MARKS)) return
  // If this fails, `endEarlier` tries again before the next attempt.
  await endProcesses({ mark, leader }).catch(() => {})
}

/** The kernel does not reuse the pid while anything of its group exists. */
function leaderOf(pid: number, startedAt: string | undefined): GroupLeader {
  return { pid, startedAt, ownsGroupAfterExit: true }
}

function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal)
  } catch {
    return false
  }
}

/** Lines of a stack trace. The line before them has the message. */
const STACK_FRAME = /^[\t ]+at .*(?:\n|$)/gm

/** Adds the last lines of the output, which usually explain a failure. */
function explain(code: number | null, signal: string | null, logFile: string): string {
  const how =
    code !== null ? `it exited with ${code}` : signal === null ? 'it ended' : `it was ended by ${signal}`
  const tail = stripVTControlCharacters(readPart(logFile, TAIL_BYTES, 'tail').replace(/^\ufffd+/, ''))
    .replace(/[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/g, '')
    .trim()
    .replace(STACK_FRAME, '')
    .trim()
  if (tail === '') return how
  return `${how}: ${tail.length > SHOWN ? `…${tail.slice(-SHOWN)}` : tail}`
}

/**
 * Reading the files in `_logs/` of a run. Every agent of the run can write there, so nothing here follows a link or waits
 * for a pipe.
 */

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = fileFlags

/** Returns 0 if the file does not exist. */
function sizeOf(file: string): number {
  const found = lstatSync(file, { throwIfNoEntry: false })
  return found?.isFile() ? found.size : 0
}

/** Reads the first or the last `most` bytes. Returns an empty text if the file does not exist. */
function readPart(file: string, most: number, part: 'head' | 'tail'): string {
  let fd: number
  try {
    fd = openSync(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  } catch {
    return ''
  }
  try {
    const found = fstatSync(fd)
    if (!found.isFile()) return ''
    const count = Math.min(found.size, most)
    const buffer = Buffer.alloc(count)
    const read = readSync(fd, buffer, 0, count, part === 'head' ? 0 : found.size - count)
    return buffer.toString('utf8', 0, read)
  } catch {
    return ''
  } finally {
    closeSync(fd)
  }
}
