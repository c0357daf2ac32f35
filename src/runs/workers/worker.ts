import type { Runner } from '../plan.ts'
import type { RunCost } from '../run.ts'

/** Describes one attempt of an agent, or one fix. */
export interface WorkOrder {
  readonly run: string
  readonly node: string
  /** `attempt 3` or `fix 1`. With the run and the node, it identifies the work even after a restart. */
  readonly what: string
  readonly runner: Runner
  readonly workspace: string
  readonly objective: string
  readonly timeoutMs: number
  readonly logFile: string
  /** Holds the exit code of a command, for a service that did not see it end. */
  readonly exitFile: string
  /** The task of a member of the team, if it already has one. */
  readonly task: string | undefined
}

export interface WorkEnd {
  readonly code: number | null
  readonly signal: string | null
  /** The worker ended without an exit code while no service was running. */
  readonly lost: boolean
  /** Explains a failure: the end of its output, or why it could not be started. */
  readonly why: string
}

/** Receives the reports of a worker. `ended` comes exactly once, and last. */
export interface WorkPort {
  started(): void
  /** A sign of life. */
  active(): void
  metered(spent: RunCost): void
  /** The program has started but is not ready: a person may have to look at its screen. */
  slow(agent: string, screen: string): void
  /** The agent reported by a command instead of status.json. */
  reported(how: 'completed' | 'failed', why: string): void
  /** The task that a member of the team got for this work. */
  delegated(task: string): void
  ended(ended: WorkEnd): void
}

export interface Worker {
  /** `finished`: it reported completion, so it gets time to exit on its own. */
  stop(finished: boolean): void
  /** Called when a halt begins (true) or ends (false). */
  freeze(frozen: boolean): void
  /** Called before a stall counts. Returns whether it is active, or was since the last call. */
  showsLife?(): boolean
  /** Called when the service stops. `leave`: processes that can outlive it keep running. Nothing is reported after this. */
  close(how: 'leave' | 'end'): Promise<void>
}

/** A kind of worker: commands, members of the team, models, people outside. */
export interface WorkerKind {
  start(order: WorkOrder, port: WorkPort): Worker
  /** Finds the work if an earlier service started it, and returns a function that follows it. */
  find(order: WorkOrder): Promise<FollowWork | undefined> | FollowWork | undefined
}

export type FollowWork = (port: WorkPort) => Worker

export type WorkerKinds = Record<Runner['kind'], WorkerKind>

const followOutsider: FollowWork = (port) => ({
  stop: () => port.ended({ code: null, signal: null, lost: false, why: '' }),
  freeze() {},
  close: async () => {},
})

/** Somebody outside Orchub, visible only through status.json. There is no process to start or stop. */
export const outsiders: WorkerKind = { start: (_, port) => followOutsider(port), find: () => followOutsider }
