import type { Runner } from '../../model/plan.ts'
import type { Spent } from '../../model/run.ts'
import type { Ended } from './command-process.ts'

/** One attempt of an agent, or one fix: who works in which folder. */
export interface WorkOrder {
  readonly run: string
  readonly node: string
  /** `attempt 3`, `fix 1`: with the run and the node it names the work, after a restart as well. */
  readonly what: string
  readonly runner: Runner
  /** A legal name for someone who is started for it. */
  readonly workspace: string
  readonly objective: string
  readonly timeoutMs: number
  readonly logFile: string
  readonly exitsFile: string
  /** The task of a member of the team, where it was given before. */
  readonly task: string | undefined
}

/** What a worker tells. `ended` comes once, whatever happens, and nothing after it. */
export interface WorkPort {
  started(): void
  /** A sign of life. */
  active(): void
  metered(spent: Spent): void
  /** Its program was started and does not come up: a person may have to look at it. */
  slow(agent: string, screen: string): void
  /** It spoke by a command and not by status.json. */
  reported(how: 'completed' | 'failed', why: string): void
  /** The task by which a member of the team does it. */
  delegated(task: string): void
  ended(ended: Ended): void
}

export interface Worker {
  /** `finished`: it said that it is done, and may end by itself. */
  stop(finished: boolean): void
  /** Everything is halted, or goes on. */
  freeze(frozen: boolean): void
  /** Asked before it is said to have stalled: whether it is at work, or has been since it was last asked. */
  showsLife?(): boolean
  /** The service ends. `leave`: what can outlive it goes on; nothing is told any more. */
  close(how: 'leave' | 'end'): Promise<void>
}

/** One way to have work done. */
export interface Workshop {
  start(order: WorkOrder, port: WorkPort): Worker
  /** What an earlier service began under the same name; undefined: surely nothing. */
  find(order: WorkOrder, port: WorkPort): Promise<Worker | undefined> | Worker | undefined
}

export type Workshops = Record<Runner['kind'], Workshop>
