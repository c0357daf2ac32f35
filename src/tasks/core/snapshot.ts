/** The state that the reducer decides on: the task with its relatives, the worker's circuit breaker, and settings. */
import { OPERATOR } from '../../base/agent.ts'
import { isEnd, type Judge, type Task, type TaskState } from '../task.ts'
import type { Breaker, BreakerSettings } from './circuit-breaker.ts'

/** The reducer's state: a task with all that a decision about it depends on, loaded in the same transaction. */
export interface TaskSnapshot {
  now: number
  task: Task
  parent: Pick<Task, 'id' | 'state'> | null
  /** Empty for a task with `delegations` 0. */
  children: readonly Child[]
  /** From the root down to the parent. Loaded for `delegated` only. */
  ancestors: readonly Pick<Task, 'agent' | 'delegator'>[]
  /** The worker's circuit breaker. Loaded for `delegated` and `retry_due` only. */
  breaker: Breaker
  settings: TaskSettings
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

/** The agents that work on each other's behalf, from the root's delegator down to the one that delegates now. */
function chainOf(ancestors: readonly Pick<Task, 'agent' | 'delegator'>[], delegator: string): string[] {
  const top = ancestors[0]?.delegator ?? delegator
  const agents = ancestors.map(({ agent }) => agent)
  return top === OPERATOR ? agents : [top, ...agents]
}

/**
 * Returns the cycle that a delegation to `agent` would close: an agent that works on an ancestor would wait for itself.
 * `ancestors` run from the root down to the delegator's own task.
 */
export function findCycle(
  ancestors: readonly Pick<Task, 'agent' | 'delegator'>[],
  delegator: string,
  agent: string,
): string[] | undefined {
  const chain = chainOf(ancestors, delegator)
  const from = chain.lastIndexOf(agent)
  return from < 0 ? undefined : [...chain.slice(from), agent]
}

/** All tasks below `root`, level by level. */
export function descendantsOf<T extends Pick<Task, 'id' | 'parent'>>(tasks: readonly T[], root: string): T[] {
  const childrenOf = Map.groupBy(tasks, ({ parent }) => parent)
  const found: T[] = []
  for (let level = [root]; level.length > 0; ) {
    const children = level.flatMap((id) => childrenOf.get(id) ?? [])
    found.push(...children)
    level = children.map(({ id }) => id)
  }
  return found
}

export type Child = Pick<
  Task,
  'id' | 'agent' | 'state' | 'requiresResponse' | 'result' | 'reason' | 'delegations'
>

/** Whether the parent can only wait for this child. A child that waits for its parent doesn't count. */
export function isAwaited(child: Pick<Child, 'state' | 'requiresResponse'>): boolean {
  return child.requiresResponse && !isEnd(child.state) && child.state !== 'waiting_parent'
}

/** Whether all awaited children have ended, so the parent is woken. */
export function allEnded(
  awaiting: readonly string[],
  children: readonly { id: string; state: TaskState }[],
): boolean {
  const stateOf = new Map(children.map(({ id, state }) => [id, state]))
  return awaiting.every((id) => {
    const state = stateOf.get(id)
    return state !== undefined && isEnd(state)
  })
}
