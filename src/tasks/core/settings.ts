import type { Judge } from '../task.ts'

export interface BreakerSettings {
  /** Consecutive failures that open the circuit. */
  failures: number
  pauseMs: number
}

export interface TaskSettings {
  /** Time for the runtime to take a delegation (S2.10, C8). */
  ackMs: number
  /** Time from there until the worker starts, because it may be busy with another task. The task's own timeout starts then. */
  startMs: number
  /** Time for an agent to answer a query, or to decide about a child that needs help. */
  waitMs: number
  /** The same for a person. Null: no limit. */
  personMs: number | null
  /** For all checks of a claim together, on top of each check's own timeout. */
  checksMs: number
  /** Time for a judgement. An agent may be busy with something else first. */
  judgeMs: Readonly<Record<Judge['kind'], number>>
  /** Least working time of a worker that is woken with its timeout almost used up. */
  graceMs: number
  maxReminders: number
  maxDepth: number
  /** Limits per task against endless loops (S2.1, ask 12). Questions include reports. */
  maxDelegations: number
  maxQuestions: number
  maxFollowUps: number
  maxExtensionSeconds: number
  breaker: BreakerSettings
}

export const DEFAULT_TASK_SETTINGS: TaskSettings = {
  ackMs: 30_000,
  startMs: 1_800_000,
  waitMs: 600_000,
  personMs: 24 * 3600_000,
  checksMs: 900_000,
  judgeMs: { model: 300_000, agent: 1_800_000 },
  graceMs: 60_000,
  maxReminders: 2,
  maxDepth: 5,
  maxDelegations: 50,
  maxQuestions: 50,
  maxFollowUps: 10,
  maxExtensionSeconds: 3600,
  breaker: { failures: 5, pauseMs: 60_000 },
}
