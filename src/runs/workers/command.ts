import { rmSync } from 'node:fs'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { ProcessFacts } from '../../runtimes/processes.ts'
import type { RunMarks } from '../processes.ts'
import {
  adoptCommand,
  type CommandOrder,
  type CommandProcess,
  readExit,
  startCommand,
} from './command-process.ts'
import { sizeOf } from './log-files.ts'
import type { Worker, WorkerKind, WorkOrder, WorkPort } from './worker.ts'

export interface CommandWorkersOptions {
  clock: Clock
  log: Log
  marks: RunMarks
  environment: Readonly<NodeJS.ProcessEnv>
  /** The processes that an earlier service left, by mark. */
  leftovers(): Promise<ReadonlyMap<string, readonly ProcessFacts[]>>
}

/** A command that reported completion gets this long to exit by itself. */
const EXIT_MS = 5000

/** Shell commands, each a process group in the workspace. */
export function createCommandWorkers(options: CommandWorkersOptions): WorkerKind {
  const { clock, log, marks, environment, leftovers } = options

  function orderOf({ run, node, what, runner, workspace, logFile, exitFile }: WorkOrder): CommandOrder {
    const command = runner.kind === 'command' ? runner.command : ''
    return { command, cwd: workspace, mark: marks.of(run, node, what), logFile, exitFile, environment }
  }

  function workerOf(process: CommandProcess, { exitFile, logFile }: CommandOrder, port: WorkPort): Worker {
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
      const worker = workerOf(startCommand(order), order, port)
      port.started()
      return worker
    },
    async find(work, port) {
      const order = orderOf(work)
      const processes = (await leftovers()).get(order.mark) ?? []
      if (processes.length === 0 && readExit(order.exitFile).note === undefined) return undefined
      const worker = workerOf(adoptCommand(order, processes), order, port)
      port.started()
      return worker
    },
  }
}
