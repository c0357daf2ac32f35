import type { RunNode } from '../../model/run.ts'
import type { Run } from '../../runs/run.ts'

/** Puts every clock of a run so much later, and says whose were changed. */
export function shiftRun(run: Run, ms: number): string[] {
  if (ms === 0) return []
  if (run.head.deadlineAt !== null) run.head = { ...run.head, deadlineAt: run.head.deadlineAt + ms }
  const changed: string[] = []
  for (const node of run.nodes.values()) {
    if (node.due === null && node.stallAt === null) continue
    run.nodes.set(node.name, later(node, ms))
    changed.push(node.name)
  }
  return changed
}

function later(node: RunNode, ms: number): RunNode {
  return {
    ...node,
    due: node.due === null ? null : { ...node.due, at: node.due.at + ms },
    stallAt: node.stallAt === null ? null : node.stallAt + ms,
  }
}
