import type { Runner } from '../plan.ts'
import type { RunCost } from '../run.ts'

/** Order for one attempt of an agent, or for one fix. */
export interface WorkOrder {
  readonly run: string
  readonly node: string
  /** `attempt 3`, `fix 1`: with the run and the node it identifies the work, also after a restart. */
  readonly what: string
  readonly runner: Runner
  readonly workspace: string
  readonly objective: string
  readonly timeoutMs: number
  readonly logFile: string
  /** How a command ended, for a service that was away meanwhile. */
  readonly exitFile: string
  /** The task of a member of the team, if it already has one. */
  readonly task: string | undefined
}

export interface WorkEnd {
  readonly code: number | null
  readonly signal: string | null
  /** Ended while no service was watching, without an exit code. */
  readonly lost: boolean
  /** The end of what it printed, if that may explain a failure; or why it could not be run. */
  readonly why: string
}

/** Receives the reports of a worker. `ended` comes exactly once, and last. */
export interface WorkPort {
  started(): void
  /** A sign of life. */
  active(): void
  metered(spent: RunCost): void
  /** The program was started but does not become ready: a person may have to look at it. */
  slow(agent: string, screen: string): void
  /** The agent reported by a command instead of status.json. */
  reported(how: 'completed' | 'failed', why: string): void
  /** The task that a member of the team got for this work. */
  delegated(task: string): void
  ended(ended: WorkEnd): void
}

export interface Worker {
  /** `finished`: it reported completion, and may exit by itself. */
  stop(finished: boolean): void
  /** A halt begins or ends. */
  freeze(frozen: boolean): void
  /** Called before it is declared stalled: whether it works, or has worked since the last call. */
  showsLife?(): boolean
  /** The service stops. `leave`: processes that can outlive it go on. Nothing is reported after this. */
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

/** Someone outside, seen only through status.json: there is no process to start or stop. */
export const outsiders: WorkerKind = { start: (_, port) => followOutsider(port), find: () => followOutsider }
