import type { ErrorCode } from '../../base/errors.ts'
import type { RunHead, RunNode } from '../run.ts'
import type { Effect } from './effect.ts'
import type { Run } from './run.ts'

/** Why something said about a run is not accepted; each transport has an answer to the code on the right. */
export const REFUSALS = {
  RUN_ENDED: 'CONFLICT',
  RUN_RUNS: 'CONFLICT',
  STALE: 'CONFLICT',
  DUPLICATE: 'CONFLICT',
  UNKNOWN_NODE: 'NOT_FOUND',
} as const satisfies Record<string, ErrorCode>

export type RefusalCode = keyof typeof REFUSALS

export interface Refusal {
  ok: false
  code: RefusalCode
  /** For the sender. */
  message: string
}

export interface Decision {
  ok: true
  head: RunHead
  /** Those that changed. */
  nodes: readonly RunNode[]
  effects: readonly Effect[]
}

export function refuse(code: RefusalCode, message: string): Refusal {
  return { ok: false, code, message }
}

/** Takes over what was decided. Without it the run is as it was, whatever became of the transaction. */
export function commit(run: Run, { head, nodes }: Decision): void {
  run.head = head
  for (const node of nodes) {
    run.nodes.set(node.name, node)
    if (node.queued === null) run.line.delete(node.name)
  }
  const queued = nodes.filter((node) => node.queued !== null && !run.line.has(node.name))
  for (const node of queued.sort((a, b) => a.queued! - b.queued!)) run.line.set(node.name, node.queued!)
}
