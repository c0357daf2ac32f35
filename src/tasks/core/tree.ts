import { OPERATOR } from '../../base/agent.ts'
import { isEnd, type Task, type TaskState } from '../task.ts'

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
