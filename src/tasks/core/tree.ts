import { OPERATOR } from '../../base/agent.ts'
import { isEnd, type Task, type TaskState } from '../task.ts'

/** What is asked about a task's place among others. */
export type Kin = Pick<Task, 'id' | 'parent' | 'agent' | 'delegator' | 'state'>

/** Who works on whose behalf, from the top down to the one who delegates now. */
export function chainOf(
  ancestors: readonly Pick<Task, 'agent' | 'delegator'>[],
  delegator: string,
): string[] {
  const top = ancestors[0]?.delegator ?? delegator
  const agents = ancestors.map(({ agent }) => agent)
  return top === OPERATOR ? agents : [top, ...agents]
}

/**
 * The circle that a delegation to `agent` would close, or undefined. An agent that works on an ancestor waits, through
 * others, for itself. `ancestors` from the root down to the delegator's own task.
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

/** Root first, then level by level. */
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

/** Its parent has nothing to do but wait for it. A child that waits for its parent is not in motion. */
export function isInMotion(child: Pick<Child, 'state' | 'requiresResponse'>): boolean {
  return child.requiresResponse && !isEnd(child.state) && child.state !== 'waiting_parent'
}

/** Have all children of this turn ended, so that the parent is to be woken? */
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
