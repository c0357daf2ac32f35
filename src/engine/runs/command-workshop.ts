import { statSync } from 'node:fs'
import { passedOn } from '../../runtimes/environment.ts'
import type { ProcessFacts } from '../../runtimes/process-table.ts'
import type { Clock, Log } from '../surroundings.ts'
import {
  adoptCommand,
  type CommandOrder,
  type CommandProcess,
  forgetExit,
  hasEnded,
  startCommand,
} from './command-process.ts'
import { canLaunch, createLauncher, type Launcher } from './launcher.ts'
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

/** Plain commands, each a process in the workspace. */
export function createCommandWorkshop(options: CommandWorkshopOptions): Workshop & { close(): void } {
  const { clock, log, marks, environment, leftovers } = options
  let launcher: Launcher | undefined

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
    void process.ended.then((ended) => {
      isDone = true
      cancel()
      if (!isClosed) port.ended(ended)
    })
    const end = () =>
      process.end().catch((error: unknown) => log.error({ err: error }, 'processes of a run cannot be ended'))
    return {
      stop(finished) {
        if (isDone) return
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
        // The next service takes it for lost, and lets it begin again.
        forgetExit(exitsFile, mark)
      },
    }
  }

  return {
    start(work, port) {
      const order = orderOf(work)
      // Started with what is passed on and nothing else, so that each command finds just that.
      if (canLaunch) launcher ??= createLauncher(passedOn(environment))
      const process = startCommand(order, launcher)
      const worker = workerOf(process, order, port)
      void process.started.then(() => port.started())
      return worker
    },
    async find(work, port) {
      const order = orderOf(work)
      const processes = (await leftovers()).get(order.mark) ?? []
      if (processes.length === 0 && !hasEnded(order)) return undefined
      const worker = workerOf(adoptCommand(order, processes), order, port)
      port.started()
      return worker
    },
    close: () => launcher?.close(),
  }
}

/** How much it has printed. */
function sizeOf(logFile: string): number {
  return statSync(logFile, { throwIfNoEntry: false })?.size ?? 0
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
