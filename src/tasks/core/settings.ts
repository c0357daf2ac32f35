import type { Judge } from '../task.ts'

export interface BreakerSettings {
  /** Failures in a row after which nothing more is delegated to the agent. */
  failures: number
  pauseMs: number
}

export interface TaskSettings {
  /** Until the runtime has taken a delegation (S2.10, C8). */
  ackMs: number
  /** From there until the worker begins; it may be busy with another task. The task's own time runs from then on. */
  startMs: number
  /** Until an agent has answered a query, or decided on a child that needs help. */
  waitMs: number
  /** The same for a person. Null: as long as it takes. */
  personMs: number | null
  /** All the checks of a claim; each has a time of its own. */
  checksMs: number
  /** A judgement: by a model, by an agent that may be at work on something else. */
  judgeMs: Readonly<Record<Judge['kind'], number>>
  /** A worker that is woken with its time almost used up gets at least this. */
  graceMs: number
  maxReminders: number
  maxDepth: number
  /** Limits per task against loops without an end (S2.1, ask 12): delegations, questions and reports, follow-ups. */
  maxDelegations: number
  maxQuestions: number
  maxFollowUps: number
  maxExtensionSeconds: number
  breaker: BreakerSettings
}

export const DEFAULT_TIMEOUT_MS = 300_000

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
