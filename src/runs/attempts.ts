import type { Clock } from '../base/clock.ts'
import { reasonOf } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { deliverReport } from '../workspaces/outbox.ts'
import {
  readStatus,
  type StatusWatch,
  updateStatus,
  type WorkspaceState,
  type WorkspaceStatus,
  watchStatus,
} from '../workspaces/status.ts'
import { clearAttempt, keepAttempt } from '../workspaces/workspaces.ts'
import { isPending, type Keyed, type OutsideEffect } from './core/events-and-effects.ts'
import type { Driver } from './driver.ts'
import type { AttemptError, Progress } from './run.ts'
import { exitOf, logOf, workspaceOf } from './run-folder.ts'
import type { FollowWork, Worker, WorkerKinds, WorkOrder, WorkPort } from './workers/worker.ts'

type Start = Keyed<Extract<OutsideEffect, { type: 'start_attempt' }>>
type Follow = Keyed<Extract<OutsideEffect, { type: 'follow_attempt' }>>
type Stop = Keyed<Extract<OutsideEffect, { type: 'stop_attempt' }>>

interface AttemptsOptions {
  clock: Clock
  log: Log
  workers: WorkerKinds
  /** Ends the processes that earlier attempts left running. Throws if that fails. */
  endEarlier(run: string, node: string, attempt: number): Promise<void>
  /** Sends people a notice. */
  inform(driver: Driver, node: string, text: string): void
}

interface LiveAttempt {
  worker: Worker
  look(): void
}

/** Shortest interval between two stored progress reports of an agent. */
const PROGRESS_MS = 500

/** Follows the live attempts through their workers and their status.json. Each one ends with exactly one `exited` event. */
export function createAttempts({ clock, log, workers, endEarlier, inform }: AttemptsOptions) {
  const live = new Map<string, LiveAttempt>()
  let closed = false
  let isFrozen = false

  /** `isNew`: ordered by this service, so no earlier one can have started it. */
  async function start(driver: Driver, effect: Start, isNew: boolean): Promise<void> {
    const { node, attempt, before } = effect
    if (live.has(keyOf(driver, node, attempt))) return
    const order = orderOf(driver, node, attempt)
    if (!isNew && (await findAgain(driver, order, node, attempt, 'pending'))) return
    const refuse = (why: string) =>
      driver.tell({ type: 'exited', node, attempt, code: null, signal: null, lost: false, why })
    if (before !== null) {
      try {
        await endEarlier(driver.id, node, attempt)
      } catch (error) {
        refuse(`processes of an earlier attempt cannot be ended: ${reasonOf(error)}`)
        return
      }
      const moved = await keepAttempt(order.workspace, before.attempt, before.why)
      if (!moved.ok) {
        refuse(`the results of attempt ${before.attempt} cannot be moved aside: ${moved.error[0]!.message}`)
        return
      }
    }
    // An earlier service may have started this attempt and left half of its work; a store restored from a backup may
    // not even know of a first attempt. Before later attempts, `keepAttempt` has moved everything aside.
    const cleared = isNew && attempt > 1 ? undefined : await clearAttempt(order.workspace)
    if (cleared?.ok === false) {
      refuse(`the leftover outbox cannot be removed: ${cleared.error[0]!.message}`)
      return
    }
    // If the attempt was cancelled during these steps, the cancellation reports its end.
    if (closed || !isPending(driver.run, effect)) return
    const begin = (port: WorkPort) => workers[order.runner.kind].start(order, port)
    open(driver, order, node, attempt, 'pending', begin)
  }

  /** Called for running attempts after a restart. */
  async function follow(driver: Driver, { node, attempt }: Follow): Promise<void> {
    if (live.has(keyOf(driver, node, attempt))) return
    const said = driver.run.nodes.get(node)!.said
    if (await findAgain(driver, orderOf(driver, node, attempt), node, attempt, said)) return
    lose(driver, node, attempt, 'it was lost with the service or the machine')
  }

  async function findAgain(
    driver: Driver,
    order: WorkOrder,
    node: string,
    attempt: number,
    from: WorkspaceState,
  ) {
    const follow = await workers[order.runner.kind].find(order)
    if (follow === undefined || closed) return closed
    open(driver, order, node, attempt, from, follow)
    return true
  }

  function open(
    driver: Driver,
    order: WorkOrder,
    node: string,
    attempt: number,
    from: WorkspaceState,
    begin: FollowWork,
  ) {
    const key = keyOf(driver, node, attempt)
    let isOver = false
    let watch: StatusWatch | undefined
    const status = createStatusReporter(driver, node, attempt, clock)

    function end(ended: { code: number | null; signal: string | null; lost: boolean; why: string }) {
      if (isOver) return
      // Report its last status before its end.
      watch?.look()
      isOver = true
      status.flush()
      watch?.close()
      live.delete(key)
      // No process can repair an unreadable status.json any more, so report that problem with the end.
      const isUnexplained = ended.code === 0 && ended.why === '' && watch?.state() === 'running'
      const read = isUnexplained ? readStatus(order.workspace) : undefined
      const why = read?.ok === false ? read.error.message : ended.why
      driver.tell({ type: 'exited', node, attempt, ...ended, why })
    }

    try {
      watch = watchStatus({
        workspace: order.workspace,
        from,
        onUpdate(update) {
          if (isOver) return
          if (update.kind === 'status') status.report(update.status)
          else if (update.kind === 'refused') driver.note(node, update.message)
          else if (update.kind === 'unreadable') driver.note(node, update.problem.message)
          else {
            driver.note(node, update.problem.message)
            live.get(key)?.worker.stop(false)
          }
        },
      })
      const port: WorkPort = {
        started: () => driver.tell({ type: 'started', node, attempt }),
        active: () => driver.tell({ type: 'active', node, attempt }),
        metered: (spent) => driver.tell({ type: 'metered', node, attempt, spent }),
        slow: (agent, screen) => inform(driver, node, slowText(node, agent, screen)),
        delegated: (task) => driver.tell({ type: 'active', node, attempt }, { task }),
        reported(how, why) {
          void report(order.workspace, how, why).finally(() => watch?.look())
        },
        ended: (ended) => void reporting.then(() => end(ended)),
      }
      const look = () => {
        watch?.look()
        status.flush()
      }
      live.set(key, { worker: NO_WORKER, look })
      const worker = begin(port)
      if (isOver) return
      live.set(key, { worker, look })
      if (isFrozen) worker.freeze(true)
    } catch (error) {
      log.error({ err: error, run: driver.id, node }, 'starting an attempt failed')
      const why = `it could not be started: ${reasonOf(error)}`
      end({ code: null, signal: null, lost: false, why })
    }
  }

  /** An agent may report by a command instead of status.json (S4.2). Copies the report there, to handle both ways alike. */
  let reporting: Promise<unknown> = Promise.resolve()
  function report(workspace: string, how: 'completed' | 'failed', why: string): Promise<void> {
    const done = reporting.then(async () => {
      if (how === 'completed') await deliverReport(workspace, why)
      if (readState(workspace) === 'pending') updateStatus(workspace, { state: 'running', started: now() })
      const error = how === 'failed' ? { error: { type: 'reported', message: why } } : {}
      updateStatus(workspace, { state: how, completed: now(), ...error })
    })
    reporting = done.catch((error: unknown) =>
      log.error({ err: error }, 'writing a report into a workspace failed'),
    )
    return done.catch(() => {})
  }

  const now = () => new Date(clock.now()).toISOString()

  function stop(driver: Driver, { node, attempt, finished }: Stop): void {
    const known = live.get(keyOf(driver, node, attempt))
    if (known !== undefined) known.worker.stop(finished)
    else void stopUnknown(driver, node, attempt, finished)
  }

  /** Stops an attempt that is just starting, or that an earlier service started. */
  async function stopUnknown(driver: Driver, node: string, attempt: number, finished: boolean) {
    const order = orderOf(driver, node, attempt)
    const said = driver.run.nodes.get(node)!.said
    const isFound = await findAgain(driver, order, node, attempt, said)
    const known = live.get(keyOf(driver, node, attempt))
    if (known !== undefined) known.worker.stop(finished)
    else if (!isFound) lose(driver, node, attempt, '')
  }

  function lose(driver: Driver, node: string, attempt: number, why: string) {
    // The last status may have been written before the attempt was lost.
    const read = readStatus(workspaceOf(driver.runFolder, node))
    const { said } = driver.run.nodes.get(node)!
    if (read.ok && read.value.status.state !== 'pending' && read.value.status.state !== said) {
      const status = createStatusReporter(driver, node, attempt, clock)
      status.report(read.value.status)
      status.flush()
    }
    driver.tell({ type: 'exited', node, attempt, code: null, signal: null, lost: true, why })
  }

  return {
    start,
    follow,
    stop,
    has: (driver: Driver, node: string, attempt: number) => live.has(keyOf(driver, node, attempt)),
    /** Reads status.json now, before a deadline counts. */
    look(driver: Driver, node: string, attempt: number) {
      live.get(keyOf(driver, node, attempt))?.look()
    },
    showsLife: (driver: Driver, node: string, attempt: number): boolean =>
      live.get(keyOf(driver, node, attempt))?.worker.showsLife?.() ?? false,
    /** Suspends or resumes all workers, for a halt. */
    freeze(frozen: boolean) {
      isFrozen = frozen
      for (const { worker } of live.values()) worker.freeze(frozen)
    },
    async close(how: 'leave' | 'end') {
      closed = true
      await Promise.all([...live.values()].map(({ worker }) => worker.close(how)))
    },
  }
}

export type Attempts = ReturnType<typeof createAttempts>

const NO_WORKER: Worker = { stop() {}, freeze() {}, close: async () => {} }

function keyOf({ id }: Driver, node: string, attempt: number): string {
  return `${id}/${node}/${attempt}`
}

export function orderOf(
  driver: Pick<Driver, 'id' | 'runFolder' | 'run' | 'record'>,
  node: string,
  attempt: number,
): WorkOrder {
  const { runner, instructions, timeoutMs } = driver.run.graph.agents.get(node)!
  return {
    run: driver.id,
    node,
    what: `attempt ${attempt}`,
    runner,
    workspace: workspaceOf(driver.runFolder, node),
    objective: instructions.objective,
    timeoutMs,
    logFile: logOf(driver.runFolder, node, attempt),
    exitFile: exitOf(driver.runFolder, node, attempt),
    task: driver.record(node).task,
  }
}

function slowText(node: string, agent: string, screen: string): string {
  const shows = screen === '' ? 'It shows nothing.' : `It shows:\n${screen}`
  return `the program of ${node} does not start; it may wait for a person (orc attach ${agent}). ${shows}`
}

function readState(workspace: string): WorkspaceState | undefined {
  const read = readStatus(workspace)
  return read.ok ? read.value.status.state : undefined
}

/** Reports a change of state at once, and progress at most every `PROGRESS_MS`. */
function createStatusReporter(driver: Driver, node: string, attempt: number, clock: Clock) {
  let lastState: WorkspaceState | undefined
  let waiting: { status: WorkspaceStatus; cancel(): void } | undefined
  let notBefore = 0

  function tell(status: WorkspaceStatus) {
    waiting?.cancel()
    waiting = undefined
    lastState = status.state
    notBefore = clock.now() + PROGRESS_MS
    const { state } = status
    const [progress, error] = [progressOf(status), errorOf(status)]
    driver.tell({ type: 'status', node, attempt, state, progress, error })
  }

  return {
    report(status: WorkspaceStatus) {
      const wait = notBefore - clock.now()
      if (status.state !== lastState || wait <= 0) {
        tell(status)
        return
      }
      waiting?.cancel()
      waiting = { status, cancel: clock.after(wait, () => tell(status)) }
    },
    flush() {
      if (waiting !== undefined) tell(waiting.status)
    },
  }
}

function progressOf({ progress }: WorkspaceStatus): Progress | null {
  if (progress === undefined) return null
  const { current_step = '', steps_completed = 0, total_steps = 0 } = progress
  // The initial content of status.json.
  if (current_step === '' && steps_completed === 0 && total_steps === 0) return null
  return { step: current_step, done: steps_completed, total: total_steps }
}

function errorOf({ state, error }: WorkspaceStatus): AttemptError | null {
  if (state !== 'failed' || error === undefined) return null
  const { type = '', message = '', details = '', recoverable = true } = error
  return { type, message, details, recoverable }
}
