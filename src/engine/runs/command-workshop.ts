import { dirname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Clock } from '../../model/clock.ts'
import type { Log } from '../../model/log.ts'
import { inheritedEnvironment } from '../../runtimes/environment.ts'
import type { ProcessFacts } from '../../runtimes/process-table.ts'
import {
  adoptCommand,
  type CommandOrder,
  type CommandProcess,
  hasEnded,
  NOTED_WITHIN_MS,
  type ReadyCommand,
  readyCommand,
  startCommand,
} from './command-process.ts'
import { forgetExit, marksIn } from './exit-notes.ts'
import { canLaunch, createLauncher, type Launcher } from './launcher.ts'
import { isFile, makeLogs, makeRoom, sizeOf } from './log-files.ts'
import type { RunMarks } from './mark.ts'
import type { Worker, WorkOrder, WorkPort, Workshop } from './worker.ts'

export interface CommandWorkshopOptions {
  clock: Clock
  log: Log
  marks: RunMarks
  environment: Readonly<NodeJS.ProcessEnv>
  /** The processes that an earlier service left, by mark. */
  leftovers(): Promise<ReadonlyMap<string, readonly ProcessFacts[]>>
}

/** One that said that it is done has its last words to say, and no more. */
const LAST_WORDS_MS = 5000

/** More shells than that do not wait for their time: the one that has waited longest gives way. */
const MOST_READY = 16

interface Expected {
  readonly order: CommandOrder
  readonly run: string
  readonly ready: ReadyCommand
}

export interface CommandWorkshop extends Workshop {
  /** It is likely to be started next: its shell is started now, and waits. */
  expect(order: WorkOrder): void
  /** Nothing more of that run is started. */
  expectNone(run: string): void
  /** Exit codes under these names are of no work that is known. */
  forget(orders: readonly WorkOrder[]): void
  /** How many are at work: not those that said that they are done. */
  working(): number
  close(): void
}

/** Plain commands, each a process in the workspace. */
export function createCommandWorkshop(options: CommandWorkshopOptions): CommandWorkshop {
  const { clock, log, marks, environment, leftovers } = options
  let launcher: Launcher | undefined
  /** By their marks, the oldest first. */
  const expected = new Map<string, Expected>()
  const working = new Set<CommandProcess>()

  // Started with what is passed on and nothing else, so that each command finds just that.
  function shells(): Launcher | undefined {
    if (canLaunch) launcher ??= createLauncher(inheritedEnvironment(environment))
    return launcher
  }

  /** The one that waits for just this order. */
  function expectedFor({ mark, command, cwd, logFile }: CommandOrder): ReadyCommand | undefined {
    const found = expected.get(mark)
    if (found === undefined) return undefined
    expected.delete(mark)
    const { order, ready } = found
    if (order.command === command && order.cwd === cwd && order.logFile === logFile) return ready
    ready.cancel()
    return undefined
  }

  function layOut({ logFile, exitsFile }: CommandOrder) {
    if (!isFile(exitsFile)) makeLogs(dirname(logFile), exitsFile)
    makeRoom(logFile)
  }

  function dismiss(mark: string, { ready }: Expected) {
    expected.delete(mark)
    ready.cancel()
  }

  function orderOf({ run, node, what, runner, workspace, logFile, exitsFile }: WorkOrder): CommandOrder {
    const command = runner.kind === 'command' ? runner.command : ''
    return { command, cwd: workspace, mark: marks.of(run, node, what), logFile, exitsFile, environment }
  }

  function workerOf(
    process: CommandProcess,
    { exitsFile, mark, logFile }: CommandOrder,
    port: WorkPort,
  ): Worker {
    let printed = 0
    let isClosed = false
    let isDone = false
    let cancel = () => {}
    working.add(process)
    void process.ended.then((ended) => {
      isDone = true
      working.delete(process)
      cancel()
      if (!isClosed) port.ended(ended)
    })
    const end = () =>
      process.end().catch((error: unknown) => log.error({ err: error }, 'processes of a run cannot be ended'))
    return {
      stop(finished) {
        if (isDone) return
        working.delete(process)
        cancel()
        if (finished) cancel = clock.after(LAST_WORDS_MS, () => void end())
        else void end()
      },
      freeze: (frozen) => {
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
        // By then, the shell that waited for it has noted its exit code.
        await Promise.race([process.ended, wait(NOTED_WITHIN_MS, undefined, { ref: false })])
        // The next service takes it for lost, and lets it begin again.
        forgetExit(exitsFile, mark)
      },
    }
  }

  return {
    start(work, port) {
      const order = orderOf(work)
      const ready = expectedFor(order)?.start()
      if (ready === undefined) layOut(order)
      const process = ready ?? startCommand(order, shells())
      const worker = workerOf(process, order, port)
      void process.started.then(() => port.started())
      return worker
    },
    async find(work, port) {
      const order = orderOf(work)
      const processes = (await leftovers()).get(order.mark) ?? []
      if (processes.length === 0 && !(await hasEnded(order))) return undefined
      const worker = workerOf(adoptCommand(order, processes), order, port)
      port.started()
      return worker
    },
    expect(work) {
      const order = orderOf(work)
      const known = shells()
      if (known === undefined || expected.has(order.mark)) return
      layOut(order)
      const ready = readyCommand(order, known)
      if (ready === undefined) return
      const [oldest] = expected.size < MOST_READY ? [] : expected
      if (oldest !== undefined) dismiss(...oldest)
      expected.set(order.mark, { order, run: work.run, ready })
    },
    expectNone(run) {
      for (const [mark, one] of expected) if (one.run === run) dismiss(mark, one)
    },
    forget(orders) {
      const commands = orders.filter(({ runner }) => runner.kind === 'command').map(orderOf)
      for (const [exitsFile, same] of Map.groupBy(commands, (one) => one.exitsFile)) {
        const left = marksIn(exitsFile)
        for (const { mark } of same) if (left.has(mark)) forgetExit(exitsFile, mark)
      }
    },
    working: () => working.size,
    close: () => launcher?.close(),
  }
}

/** Someone outside, known by status.json only: there is nothing to start and nothing to stop. */
export function createFilesWorkshop(): Workshop {
  function begin(_: WorkOrder, port: WorkPort): Worker {
    return {
      stop: () => port.ended({ code: null, signal: null, lost: false, why: '' }),
      freeze() {},
      close: async () => {},
    }
  }
  return { start: begin, find: begin }
}
