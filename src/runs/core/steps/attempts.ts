import type { Attempt, RunNode } from '../../run.ts'

/** The last attempt, changed. */
export function withAttempt(node: RunNode, changes: Partial<Attempt>): RunNode {
  const last = node.attempts.at(-1)
  return last === undefined
    ? node
    : { ...node, attempts: [...node.attempts.slice(0, -1), { ...last, ...changes }] }
}

/** How the last attempt went; nothing where it is known already, or none was begun. */
export function endAttempt(
  node: RunNode,
  now: number,
  changes: Pick<Attempt, 'outcome' | 'why'> & Partial<Attempt>,
): RunNode {
  const last = node.attempts.at(-1)
  const isOpen = last?.outcome === 'running' || last?.outcome === 'claimed'
  return isOpen ? withAttempt(node, { endedAt: now, ...changes }) : node
}
